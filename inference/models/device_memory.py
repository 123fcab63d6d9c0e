"""How much memory of its device a process uses, asked as often as once a step.

Knows the kinds of device; does not know what the memory is for.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

STATM = Path("/proc/self/statm")


def meter_of(device: str) -> Callable[[], int]:
    """Bytes in use now: what torch has allocated on an accelerator, the resident size of this process on a CPU."""
    if torch.device(device).type == "cuda":
        return partial(torch.cuda.memory_allocated, device)
    return resident_bytes if STATM.exists() else peak_resident_bytes


def resident_bytes() -> int:
    """Linux: the second number of statm, in pages."""
    return int(STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_resident_bytes() -> int:
    """Elsewhere only the largest size so far is told: in bytes on macOS, in KiB on others."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
