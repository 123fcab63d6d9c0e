"""On what something was measured, in one line. Knows Linux's names of things; elsewhere it says less."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import torch

from inference.models.loader import LoadedModel
from inference.models.precision import dtype_name

# More than this many busy processes beside us, and the numbers are not worth keeping.
QUIET_LOAD = 0.5


def describe(model: LoadedModel) -> str:
    device = torch.cuda.get_device_name() if model.device == "cuda" else _processor()
    parts = [
        f"{model.folder.name} in {dtype_name(model.dtype)} on {device}",
        f"{torch.get_num_threads()} threads",
        f"torch {torch.__version__}",
        f"load before {os.getloadavg()[0]:.1f}",
    ]
    return ", ".join([*parts, f"commit {commit}"] if (commit := _commit()) else parts)


def is_quiet() -> bool:
    return os.getloadavg()[0] <= QUIET_LOAD


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({len(names)} cores)" if names else platform.processor()


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
