"""Secrets that an installation makes for itself once: one file each, readable by its owner only."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Credential:
    value: str
    path: Path
    is_new: bool


def kept_credential(path: Path, num_bytes: int = 48) -> Credential:
    """The secret stored at `path`; made on the first call, complete or not at all."""
    if path.exists():
        return Credential(path.read_text().strip(), path, is_new=False)
    value = secrets.token_urlsafe(num_bytes)
    partial = path.with_name(path.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(value + "\n")
        file.flush()
        os.fsync(descriptor)
    partial.rename(path)
    return Credential(value, path, is_new=True)
