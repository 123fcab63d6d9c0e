"""Model folders that appear whole or not at all, with a manifest of checksums.

Knows how a folder is built beside its final place and moved there, and how it is checked later.
Does not know what is in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from inference.models.errors import ModelNotUsable

MANIFEST_NAME = "manifest.json"
UNFINISHED_PREFIX = ".unfinished-"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a folder as it was written."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a finished folder holds and what it was made from."""

    source: str  # "sha256:…" of the file it was converted from, with the version of the converter
    files: dict[str, FileEntry]

    @property
    def digest(self) -> str:
        """SHA-256 over all file names and hashes: the identity of the folder's content."""
        lines = [f"{name} {entry.sha256}\n" for name, entry in sorted(self.files.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder built here; None for any other folder."""
    try:
        fields = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
        files = {name: FileEntry(**entry) for name, entry in fields["files"].items()}
        return Manifest(source=fields["source"], files=files)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ModelNotUsable(
            f"{folder / MANIFEST_NAME} is damaged ({error}); delete the folder {folder}"
        ) from None


def is_ready(folder: Path, source: str) -> bool:
    """True when the folder was built from `source` and every file still has its size."""
    manifest = read_manifest(folder)
    return manifest is not None and manifest.source == source and not _wrong_sizes(folder, manifest)


def verify(folder: Path) -> None:
    """Reads every byte; raises ModelNotUsable when a file is not what was written."""
    manifest = read_manifest(folder)
    if manifest is None:
        return
    wrong = _wrong_sizes(folder, manifest) or [
        name for name, entry in manifest.files.items() if sha256_file(folder / name) != entry.sha256
    ]
    if wrong:
        raise ModelNotUsable(f"{folder / wrong[0]} does not match its checksum; delete the folder {folder}")


def build(folder: Path, source: str, fill: Callable[[Path], None], keeps_unfinished: bool = False) -> Path:
    """Runs `fill` on a hidden folder and renames it to `folder`, replacing what was there.

    A kill at any moment leaves either no folder or the whole one. What a killed build left is removed by the next,
    or handed to its `fill` when `keeps_unfinished` (a download that goes on).
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive(folder.parent):
        if is_ready(folder, source):  # another process built it while we waited
            return folder
        unfinished = folder.parent / f"{UNFINISHED_PREFIX}{folder.name}"
        if unfinished.exists() and not keeps_unfinished:
            shutil.rmtree(unfinished)
        unfinished.mkdir(exist_ok=True)
        fill(unfinished)
        _write_manifest(unfinished, source)
        if folder.exists():
            shutil.rmtree(folder)
        unfinished.rename(folder)
        _sync(folder.parent)
    return folder


def require_space(folder: Path, needed_bytes: int) -> None:
    """Raises ModelNotUsable when the disk of `folder` has less than `needed_bytes` left."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        needed_mb, free_mb = needed_bytes // 1_000_000, free // 1_000_000
        raise ModelNotUsable(f"not enough disk: {folder} needs {needed_mb} MB and has {free_mb} MB free")


def sha256_file(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Replaces the content of `path` in one move that survives a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{UNFINISHED_PREFIX}{path.name}")
    unfinished.write_text(text, encoding="utf-8")
    _sync(unfinished)
    unfinished.replace(path)


def _wrong_sizes(folder: Path, manifest: Manifest) -> list[str]:
    def size_of(name: str) -> int:
        path = folder / name
        return path.stat().st_size if path.is_file() else -1

    return [name for name, entry in manifest.files.items() if size_of(name) != entry.size_bytes]


def _write_manifest(folder: Path, source: str) -> None:
    """Written last: its hashes are of bytes that are already on the disk."""
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        _sync(path)
        files[path.relative_to(folder).as_posix()] = FileEntry(
            size_bytes=path.stat().st_size, sha256=sha256_file(path)
        )
    write_text(folder / MANIFEST_NAME, json.dumps(asdict(Manifest(source, files)), indent=2))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _exclusive(parent: Path) -> Iterator[None]:
    """One builder at a time in `parent`, across processes; a killed holder lets go by itself."""
    with (parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
