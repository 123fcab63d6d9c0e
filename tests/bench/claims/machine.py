"""On what a claim was measured, in one line."""

from __future__ import annotations

import os

import torch

from inference.models.loader import LoadedModel
from inference.models.precision import dtype_name
from tests.bench import host


def describe(model: LoadedModel) -> str:
    device = torch.cuda.get_device_name() if model.device == "cuda" else host.processor()
    parts = [
        f"{model.folder.name} in {dtype_name(model.dtype)} on {device}",
        f"{torch.get_num_threads()} threads",
        f"torch {torch.__version__}",
        f"load before {os.getloadavg()[0]:.1f}",
    ]
    return ", ".join([*parts, f"commit {commit}"] if (commit := host.commit()) else parts)
