"""The folder of the sockets."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from chatsite.launcher.errors import Unsuitable
from chatsite.launcher.runtime import LONGEST_SOCKET_NAME, PREFIX, remove_leftover, runtime_folder


def test_the_folder_is_private_and_gone_afterwards() -> None:
    with runtime_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "left.sock").touch()
    assert not folder.exists()


def test_a_socket_fits_also_where_the_temporary_folder_is_deep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with runtime_folder() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = folder / "postgres" / Path(LONGEST_SOCKET_NAME).name
        path.parent.mkdir()
        listener.bind(str(path))


def test_no_usable_place_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(Unsuitable, match="XDG_RUNTIME_DIR"), runtime_folder():
        raise AssertionError("a folder without access was used")


def test_only_our_own_leftovers_are_removed(tmp_path: Path) -> None:
    ours, others = tmp_path / f"{PREFIX}abc", tmp_path / "precious"
    ours.mkdir()
    others.mkdir()
    link = tmp_path / f"{PREFIX}link"
    link.symlink_to(others)
    for path in (ours, others, link):
        remove_leftover(str(path))
    assert not ours.exists()
    assert others.exists()
