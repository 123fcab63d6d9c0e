from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inference.models import store
from inference.models.errors import ModelNotUsable

KILLED_BUILD = """
import os, signal, sys
from pathlib import Path
from inference.models import store

def fill(folder):
    (folder / "weights").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

store.build(Path(sys.argv[1]), "source", fill)
"""


def _fill(folder: Path) -> None:
    (folder / "weights").write_text("whole")
    (folder / "inner").mkdir()
    (folder / "inner" / "config").write_text("{}")


def test_killed_build_leaves_no_folder_and_the_next_one_succeeds(tmp_path: Path) -> None:
    target = tmp_path / "model"
    killed = subprocess.run([sys.executable, "-c", KILLED_BUILD, str(target)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not target.exists()
    assert not store.is_ready(target, "source")
    store.build(target, "source", _fill)
    assert (target / "weights").read_text() == "whole"
    assert sorted(os.listdir(tmp_path)) == [".lock", "model"]


def test_failed_build_leaves_the_old_folder_in_place(tmp_path: Path) -> None:
    target = store.build(tmp_path / "model", "old", _fill)

    def fail(folder: Path) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.build(target, "new", fail)
    assert store.is_ready(target, "old")


def test_finished_folder_is_not_built_again(tmp_path: Path) -> None:
    target = store.build(tmp_path / "model", "source", _fill)

    def never(folder: Path) -> None:
        raise AssertionError("built twice")

    assert store.build(target, "source", never) == target


def test_another_source_replaces_the_folder(tmp_path: Path) -> None:
    target = store.build(tmp_path / "model", "old", lambda folder: (folder / "left").touch())
    store.build(target, "new", _fill)
    assert not (target / "left").exists()
    assert store.is_ready(target, "new")


def test_unfinished_download_is_handed_to_the_next_build(tmp_path: Path) -> None:
    half = tmp_path / f"{store.UNFINISHED_PREFIX}model"
    half.mkdir()
    (half / "first").write_text("here already")

    def go_on(folder: Path) -> None:
        assert (folder / "first").read_text() == "here already"

    target = store.build(tmp_path / "model", "hub", go_on, keeps_unfinished=True)
    assert (target / "first").is_file()


@pytest.mark.parametrize("damage", ["", "shorter"], ids=["emptied", "cut"])
def test_file_of_another_size_makes_the_folder_unready(damage: str, tmp_path: Path) -> None:
    target = store.build(tmp_path / "model", "source", _fill)
    (target / "inner" / "config").write_text(damage)
    assert not store.is_ready(target, "source")


def test_missing_file_makes_the_folder_unready(tmp_path: Path) -> None:
    target = store.build(tmp_path / "model", "source", _fill)
    (target / "inner" / "config").unlink()
    assert not store.is_ready(target, "source")


def test_verify_finds_a_changed_byte_of_the_same_size(tmp_path: Path) -> None:
    target = store.build(tmp_path / "model", "source", _fill)
    store.verify(target)
    (target / "weights").write_text("whale")
    assert store.is_ready(target, "source")
    with pytest.raises(ModelNotUsable, match="weights does not match its checksum"):
        store.verify(target)


def test_damaged_manifest_is_a_clear_error(tmp_path: Path) -> None:
    target = store.build(tmp_path / "model", "source", _fill)
    (target / store.MANIFEST_NAME).write_text("{")
    with pytest.raises(ModelNotUsable, match="is damaged"):
        store.is_ready(target, "source")


def test_too_little_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable, match="not enough disk"):
        store.require_space(tmp_path, 10**18)
