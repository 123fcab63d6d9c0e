"""Vectors and scores of many texts, made by the encoders in a process of their own and kept on disk.

Knows where they are kept and when they can be used again: the same texts and the same encoder setting. Does not know
the encoders, which live in the inference house and are reached by its commands.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

EMBED = "inference.offline.vectors"
SCORE = "inference.offline.scores"

Embed = Callable[[Sequence[str]], np.ndarray]
Verify = Callable[[Sequence[tuple[str, str]]], Sequence[float]]


def kept_in(folder: Path) -> Embed:
    """An `embed` that gives (num_texts, dim) float32 unit vectors and computes only what `folder` does not hold."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        return _kept(folder, os.environ.get("EMBED_MODEL", ""), texts, EMBED)

    return embed


def scored_by(verifier: Path, folder: Path) -> Verify:
    """A `verify` that asks the cross-encoder of the folder `verifier`; new weights there are new scores."""

    def verify(pairs: Sequence[tuple[str, str]]) -> list[float]:
        weights = [(file.name, file.stat().st_mtime_ns) for file in sorted(verifier.glob("*.safetensors"))]
        scores: list[float] = _kept(folder, f"{verifier} {weights}", pairs, SCORE, str(verifier)).tolist()
        return scores

    return verify


def _kept(folder: Path, made_by: str, asked: Sequence[Any], *command: str) -> np.ndarray:
    file = folder / f"{_checksum(made_by, asked)}.npy"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        words = (sys.executable, "-m", *command, str(file))
        subprocess.run(words, input=json.dumps(list(asked)), text=True, check=True)
    rows: np.ndarray = np.load(file)
    return rows


def _checksum(made_by: str, asked: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps([made_by, *asked]).encode()).hexdigest()[:32]
