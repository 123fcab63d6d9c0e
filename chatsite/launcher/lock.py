"""One launcher per data folder. The lock dies with its process, so nothing has to be cleaned up after a crash."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from chatsite.launcher.errors import AlreadyRunning

LOCK_NAME = "launcher.lock"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a data folder: shown to whoever tries to start a second launcher in it."""

    pid: int
    url: str
    runtime_dir: str


@dataclass(slots=True)
class DataLock:
    """A held lock. `previous` is the holder that never said goodbye (killed, or the machine went down)."""

    descriptor: int
    previous: Holder | None

    def record(self, holder: Holder) -> None:
        text = json.dumps(asdict(holder)).encode()
        os.pwrite(self.descriptor, text, 0)
        os.ftruncate(self.descriptor, len(text))


@contextmanager
def hold_data_dir(data_dir: Path) -> Iterator[DataLock]:
    """Hold `data_dir` for the body of the `with`; raises AlreadyRunning when another launcher holds it."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(_already_running(data_dir, _read_holder(descriptor))) from None
        yield DataLock(descriptor, _read_holder(descriptor))
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def running_holder(data_dir: Path) -> Holder | None:
    """Whose launcher runs in `data_dir` now; None when none does."""
    try:
        descriptor = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return _read_holder(descriptor)
    finally:
        os.close(descriptor)


def _read_holder(descriptor: int) -> Holder | None:
    text = os.pread(descriptor, 4096, 0)
    try:
        return Holder(**json.loads(text)) if text else None
    except (ValueError, TypeError):
        return None  # half a record, from a machine that went down while it was written


def _already_running(data_dir: Path, holder: Holder | None) -> str:
    if holder is None:
        return f"{data_dir} is just being started by another launcher"
    return (
        f"already running in {data_dir}: process {holder.pid}, {holder.url} "
        f"(stop it with Ctrl-C where it runs, or: kill {holder.pid}; "
        "a second copy needs another DATA_DIR and PORT)"
    )
