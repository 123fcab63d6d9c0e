"""Which number format the weights are kept in.

Knows the names of the setting ENGINE_DTYPE, which processors compute bf16 natively, and how Linux describes one.
"""

from __future__ import annotations

from pathlib import Path

import torch

from inference.models.errors import ModelNotUsable

CPU_DESCRIPTION = Path("/proc/cpuinfo")

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_NATIVE_BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # the last one is how ARM calls it


def choose_dtype(name: str, device: str) -> torch.dtype:
    """The dtype that `name` (fp32, bf16, fp16 or auto) means on `device`."""
    if name != "auto":
        return _DTYPES[name]
    computes_bf16 = torch.cuda.is_bf16_supported() if device == "cuda" else _cpu_computes_bf16()
    return torch.bfloat16 if computes_bf16 else torch.float32


def choose_device(name: str) -> str:
    """The device that `name` (cpu, cuda or auto) means on this machine. Raises ModelNotUsable where it has none."""
    has_cuda = torch.cuda.is_available()
    if name == "cuda" and not has_cuda:
        raise ModelNotUsable("ENGINE_DEVICE=cuda, but torch finds no such device here")
    if name != "auto":
        return name
    return "cuda" if has_cuda else "cpu"


def dtype_name(dtype: torch.dtype) -> str:
    """The name by which the settings call `dtype`."""
    return next(name for name, known in _DTYPES.items() if known is dtype)


def processor_flags(description: Path) -> frozenset[str]:
    """What the processor can do, by Linux's names; nothing where the file is missing."""
    if not description.is_file():
        return frozenset()
    lines = description.read_text(encoding="utf-8").splitlines()
    return frozenset(
        next((line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))), [])
    )


def _cpu_computes_bf16() -> bool:
    return not _NATIVE_BF16_FLAGS.isdisjoint(processor_flags(CPU_DESCRIPTION))
