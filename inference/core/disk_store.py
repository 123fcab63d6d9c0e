"""A folder of KV blocks: which are there, which go when it is full, and whose they are.

One file per block, named after its key and its conversation, so that a start needs no file's content to know what
is there, and a conversation's files can be erased without reading any. The files are ours alone: mode 0600 in a
folder of mode 0700, locked while an engine uses it. Thread-safe; knows no queues, no tensors and no rates.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from inference.core.disk_record import (
    BlockLayout,
    RecordRefused,
    max_record_bytes,
    pack_record,
    unpack_record,
)
from inference.core.prefix import BlockIdentity

LOCK_NAME = "owner"
SUFFIX = ".kv"
TEMPORARY = ".part"
FILE_NAME = re.compile(r"([0-9a-f]{64})-([0-9a-f]{2,128})\.kv")
# A start looks at names for so long; what it did not get to see is erased, since nobody could erase it later.
MAX_SCAN_S = 5.0
# Whoever comes back later than this waits a little longer. It also bounds what an erasure can miss that never arrived.
MAX_AGE_S = 7 * 86_400.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _File:
    conversation: bytes
    num_bytes: int
    used_at: float  # seconds since the epoch


class DiskStore:
    """Least recently used blocks go first when `max_bytes` is reached, and after `MAX_AGE_S` in any case."""

    def __init__(
        self, folder: Path, layout: BlockLayout, max_bytes: int, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self.folder = folder
        self.layout = layout
        self.num_refused = 0
        self.num_bytes = 0
        self._max_bytes = max_bytes
        self._wall_clock = wall_clock
        self._files: OrderedDict[bytes, _File] = OrderedDict()  # least recently used first
        self._keys: dict[bytes, set[bytes]] = {}  # by conversation
        self._last_use = 0.0
        self._lock = threading.Lock()
        self._lock_file = -1

    def __len__(self) -> int:
        return len(self._files)

    def open(self, owner_id: str) -> None:
        """Take the folder and list what is in it. Raises OSError when it cannot be used or another engine uses it.

        `owner_id` names the key that made salts and conversation names: what another key has named can neither be
        found nor erased by name any more, so it is erased here.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        self._lock_file = _locked(self.folder)
        if os.pread(self._lock_file, 256, 0) != owner_id.encode():
            self._erase_all()
            os.ftruncate(self._lock_file, 0)
            os.pwrite(self._lock_file, owner_id.encode(), 0)
        self._scan()
        self._shrink()

    def close(self) -> None:
        if self._lock_file >= 0:
            os.close(self._lock_file)
            self._lock_file = -1

    def erase_other_models(self) -> None:
        """Blocks of models that no engine serves now: kept, nobody could erase a conversation's part of them."""
        for other in self.folder.parent.iterdir():
            if other == self.folder or not (other / LOCK_NAME).is_file():
                continue
            try:
                lock_file = _locked(other)
            except OSError:
                continue  # another engine's
            try:
                shutil.rmtree(other, ignore_errors=True)
            finally:
                os.close(lock_file)

    def has(self, block: BlockIdentity) -> bool:
        return block.key in self._files

    def touch(self, block: BlockIdentity) -> None:
        """The block was used: it goes later."""
        with self._lock:
            if block.key in self._files:
                self._files[block.key] = replace(self._files[block.key], used_at=self._now())
                self._files.move_to_end(block.key)

    def stamp(self, chain: Sequence[BlockIdentity]) -> None:
        """A whole chain was used, and that outlives a restart. Its end goes first: a beginning is of use alone."""
        for block in reversed(chain):
            self.touch(block)
            file = self._files.get(block.key)
            if file is not None:
                with suppress(OSError):
                    os.utime(self._path(block.key, file.conversation), (file.used_at, file.used_at))

    def put(
        self,
        block: BlockIdentity,
        conversation: bytes,
        payload: bytes,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Keep a block, whole or not at all; False when it is there or `is_wanted` no longer. Raises OSError."""
        record = pack_record(self.layout, block, conversation, payload)
        if len(record) > self._max_bytes or self.has(block):
            return False
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = self._path(block.key, conversation)
        temporary = target.with_suffix(TEMPORARY)
        try:
            _write(temporary, record)
            with self._lock:  # an erasure comes either before, and is heard of, or after, and finds the file
                if not is_wanted():
                    return False
                temporary.rename(target)
                self._add(block.key, _File(conversation, len(record), self._now()))
        finally:
            temporary.unlink(missing_ok=True)
        self._shrink()
        return True

    def get(self, block: BlockIdentity) -> memoryview | None:
        """The block's numbers; None when they are not there or cannot be believed, and then the file goes."""
        file = self._files.get(block.key)
        if file is None:
            return None
        path = self._path(block.key, file.conversation)
        try:
            raw = _read(path, max_record_bytes(self.layout))
            return unpack_record(self.layout, block, file.conversation, raw)
        except RecordRefused as reason:
            self.num_refused += 1
            log.warning("a KV block on disk is refused: %s", reason)
        except OSError as error:
            log.warning("a KV block on disk cannot be read: %s", error)
        self.remove([block.key])
        return None

    def lose(self, conversation: bytes) -> list[Path]:
        """Find a conversation's blocks no more; gives the files that are still to be erased."""
        with self._lock:
            return [self._drop(key) for key in list(self._keys.get(conversation, ()))]

    def remove(self, keys: list[bytes]) -> None:
        with self._lock:
            paths = [self._drop(key) for key in keys if key in self._files]
        erase(paths)

    # --- details

    def _now(self) -> float:
        """Never the same twice, so that the order of use can be read from the files' times."""
        self._last_use = max(self._wall_clock(), self._last_use + 1e-6)
        return self._last_use

    def _path(self, key: bytes, conversation: bytes) -> Path:
        return self.folder / f"{key.hex()}-{conversation.hex()}{SUFFIX}"

    def _add(self, key: bytes, file: _File) -> None:
        assert key not in self._files, "a block is written once"
        self._files[key] = file
        self._keys.setdefault(file.conversation, set()).add(key)
        self.num_bytes += file.num_bytes

    def _drop(self, key: bytes) -> Path:
        file = self._files.pop(key)
        self._keys[file.conversation].discard(key)
        if not self._keys[file.conversation]:
            del self._keys[file.conversation]
        self.num_bytes -= file.num_bytes
        return self._path(key, file.conversation)

    def _shrink(self) -> None:
        with self._lock:
            paths, oldest = [], self._wall_clock() - MAX_AGE_S
            while self._files:
                key, file = next(iter(self._files.items()))
                if self.num_bytes <= self._max_bytes and file.used_at >= oldest:
                    break
                paths.append(self._drop(key))
        erase(paths)

    def _scan(self) -> None:
        ends_at = time.monotonic() + MAX_SCAN_S
        found: list[tuple[bytes, _File]] = []
        unseen: list[Path] = []
        for entry in os.scandir(self.folder):
            name = FILE_NAME.fullmatch(entry.name)
            if entry.name.endswith(TEMPORARY) or (name and time.monotonic() > ends_at):
                unseen.append(Path(entry.path))
            elif name:
                stat = entry.stat(follow_symlinks=False)
                key, conversation = (bytes.fromhex(part) for part in name.groups())
                found.append((key, _File(conversation, stat.st_size, stat.st_mtime)))
        for key, file in sorted(found, key=lambda one: one[1].used_at):
            if key in self._files:  # a crash came between two writes of one block
                unseen.append(self._drop(key))
            self._add(key, file)
        erase(unseen)

    def _erase_all(self) -> None:
        erase(
            [
                Path(entry.path)
                for entry in os.scandir(self.folder)
                if entry.name.endswith((SUFFIX, TEMPORARY))
            ]
        )


def erase(paths: list[Path]) -> None:
    """A file that cannot be erased is logged: somebody has to know of it."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            log.error("a KV block cannot be erased from disk: %s", error)


def _locked(folder: Path) -> int:
    """An open lock file. Raises OSError when another process holds it."""
    lock_file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock_file)
        raise OSError(errno.EBUSY, "another engine uses it", str(folder)) from error
    return lock_file


def _write(path: Path, record: bytes) -> None:
    # Not synced: after a power cut the checksum tells, and the block is computed again.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        view = memoryview(record)
        while view:
            view = view[file.write(view) :]


def _read(path: Path, max_bytes: int) -> bytes:
    """The whole file. Raises RecordRefused when it is too long to be a record."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size > max_bytes:
            raise RecordRefused("it is too long")
        return file.read()
