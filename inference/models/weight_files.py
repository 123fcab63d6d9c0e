"""The tensors of a model folder by name, as they lie in its safetensors files.

A tensor that is read is a view of the mapped file: memory comes page by page as it is looked at, and goes when nobody
holds a tensor of that file any more. Does not know what the names mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"


class WeightFiles:
    """Read-only. Raises OSError, ValueError or SafetensorError for folders that hold no such files."""

    def __init__(self, folder: Path) -> None:
        index = folder / INDEX
        if (folder / ONE_FILE).is_file() or not index.is_file():
            names = [ONE_FILE]
        else:
            names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        files: list[Any] = [safe_open(folder / name, framework="pt") for name in names]
        self._file_of = {name: file for file in files for name in file.keys()}  # noqa: SIM118  # no dict

    def shape(self, name: str) -> tuple[int, ...] | None:
        """None where there is no such tensor."""
        file = self._file_of.get(name)
        return None if file is None else tuple(file.get_slice(name).get_shape())

    def tensor(self, name: str) -> torch.Tensor:
        tensor: torch.Tensor = self._file_of[name].get_tensor(name)
        return tensor
