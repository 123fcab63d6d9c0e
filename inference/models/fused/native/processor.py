"""What this machine's processor computes in one instruction, as ATen's vectors know it.

Knows the names of Linux for x86. Does not import torch.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

CPU_DESCRIPTION = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Capability:
    """A level of ATen's (`CPU_CAPABILITY`), and what the compiler must be told for it."""

    name: str
    flags: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        macros = [f"-DCPU_CAPABILITY={self.name}", f"-DCPU_CAPABILITY_{self.name}"]
        return [*macros, *(f"-m{flag}" for flag in self.flags)]


# The best first. Without any, the vectors are those that every processor of its kind has (NEON on ARM).
AVX512 = Capability("AVX512", ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx2", "fma", "f16c"))
AVX2 = Capability("AVX2", ("avx2", "fma", "f16c"))
DEFAULT = Capability("DEFAULT", ())


def capability() -> Capability:
    """The best that this processor has whole."""
    if platform.machine() not in {"x86_64", "AMD64"} or not CPU_DESCRIPTION.is_file():
        return DEFAULT
    lines = CPU_DESCRIPTION.read_text(encoding="utf-8").splitlines()
    flags = next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())
    return next((level for level in (AVX512, AVX2) if flags.issuperset(level.flags)), DEFAULT)
