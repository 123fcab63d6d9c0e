"""Which form of the small operations a network gets.

Knows the values of the setting ENGINE_KERNELS. Does not know what the forms compute.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from inference.models.errors import ModelNotUsable
from inference.models.fused.kernels import Kernels, PlainKernels
from inference.models.fused.native import build
from inference.models.fused.native.library import DTYPES, NativeKernels

KernelsFor = Callable[[torch.dtype, str], Kernels]  # the model's dtype and its device


def plain_kernels(dtype: torch.dtype, device: str) -> Kernels:
    """Plain torch, whatever the model is."""
    return PlainKernels()


def kernels_for(setting: str, data_dir: str) -> KernelsFor:
    """What the setting means for a model; compiled ones are those that were built in `data_dir`.

    The returned function raises ModelNotUsable where the setting is native and they cannot run.
    """

    def choose(dtype: torch.dtype, device: str) -> Kernels:
        if setting == "torch":
            return PlainKernels()
        try:
            return NativeKernels(_library(data_dir, dtype, device))
        except (ModelNotUsable, OSError) as error:
            if setting == "native":
                raise ModelNotUsable(f"ENGINE_KERNELS=native: {error}") from error
            return PlainKernels()

    return choose


def _library(data_dir: str, dtype: torch.dtype, device: str) -> Path:
    if device != "cpu" or dtype not in DTYPES:
        raise ModelNotUsable(f"they compute fp32 and bf16 on a CPU, not {dtype} on {device}")
    library = build.found(data_dir)
    if library is None:
        raise ModelNotUsable(
            f"{data_dir} has none for this processor; make models compiles them where g++ is"
        )
    return library
