"""The machine that something was measured on, as far as its numbers are worth. Knows Linux's names of things; elsewhere
it says less."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

CPU_DESCRIPTION = Path("/proc/cpuinfo")
# What decides how quick matrices are in which number format; machines of one name differ in it.
VECTOR_UNITS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
# More than this many busy processes beside us, and the numbers are not worth keeping.
QUIET_LOAD = 0.5


def is_quiet() -> bool:
    return os.getloadavg()[0] <= QUIET_LOAD


def processor() -> str:
    names = _described("model name")
    return f"{names[0]} ({len(names)} cores)" if names else platform.processor()


def vector_units() -> str:
    """Those of `VECTOR_UNITS` that the processor has, or empty."""
    flags = set(" ".join(_described("flags")).split())
    return " ".join(unit for unit in VECTOR_UNITS if unit in flags)


def _described(what: str) -> list[str]:
    """What Linux says of it, for each core."""
    lines = CPU_DESCRIPTION.read_text(encoding="utf-8").splitlines() if CPU_DESCRIPTION.is_file() else []
    return [line.partition(":")[2].strip() for line in lines if line.startswith(what)]


def commit() -> str:
    """ "" outside of a repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
