"""The identity of a model folder's content.

Knows that KV and vectors of two models must never meet, and that reading 14 GB at each start is too slow.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from inference.models import store

# A fine-tune changes nearly every page of a weight file, so a few hundred of them tell two models apart.
_NUM_SAMPLES = 256
_SAMPLE_BYTES = 4096


def fingerprint(folder: Path, *aspects: str) -> str:
    """SHA-256 over the folder's content and over `aspects` of its use (dtype, pooling).

    Folders built here are known by the hashes of their manifest; others by their small files and by samples of
    the large ones. Neither path nor time counts, so a copied folder keeps its identity.
    """
    manifest = store.read_manifest(folder)
    content = _sampled_digest(folder) if manifest is None else manifest.digest
    return hashlib.sha256("\n".join((content, *aspects)).encode()).hexdigest()


def _sampled_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            for position in _sample_positions(size):
                file.seek(position)
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def _sample_positions(size: int) -> range:
    """Every page of a file up to 1 MiB, else evenly spaced pages from its first (the header) to its end."""
    if size <= _NUM_SAMPLES * _SAMPLE_BYTES:
        return range(0, size, _SAMPLE_BYTES)
    return range(0, size - _SAMPLE_BYTES + 1, (size - _SAMPLE_BYTES) // (_NUM_SAMPLES - 1))
