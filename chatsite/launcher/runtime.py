"""The short private folder for unix sockets of one run.

A socket's path ends at 107 bytes, so the folder cannot live in the data folder, which may be anywhere.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chatsite.launcher.errors import Unsuitable

PREFIX = "rill-"
LONGEST_SOCKET_NAME = "/" + PREFIX + "01234567/postgres/.s.PGSQL.5432.lock"
SOCKET_PATH_LIMIT = 107


@contextmanager
def runtime_folder() -> Iterator[Path]:
    """A new folder, open to its owner only, removed with everything in it at the end."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_short_base()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftover(folder: str) -> None:
    """Remove the runtime folder of a launcher that was killed; anything not made by us is left alone."""
    path = Path(folder)
    if (
        path.name.startswith(PREFIX)
        and path.is_dir()
        and not path.is_symlink()
        and path.stat().st_uid == os.geteuid()
    ):
        shutil.rmtree(path, ignore_errors=True)


def _short_base() -> str:
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"):  # noqa: S108 (mkdtemp below)
        is_usable = base and os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK)
        if is_usable and len(os.fsencode(base + LONGEST_SOCKET_NAME)) <= SOCKET_PATH_LIMIT:
            return base
    raise Unsuitable("no writable folder with a path short enough for unix sockets (set XDG_RUNTIME_DIR)")
