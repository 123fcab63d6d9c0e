"""One launcher per data folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chatsite.launcher.errors import AlreadyRunning
from chatsite.launcher.lock import LOCK_NAME, Holder, hold_data_dir

from .processes import PROJECT

HOLDER = Holder(pid=4711, url="http://127.0.0.1:8123/", runtime_dir="/somewhere/rill-x")


def test_a_second_launcher_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    with hold_data_dir(tmp_path) as lock:
        lock.record(HOLDER)
        with pytest.raises(AlreadyRunning) as caught, hold_data_dir(tmp_path):
            raise AssertionError("two launchers hold one folder")
    message = str(caught.value)
    assert "already running" in message
    assert "4711" in message
    assert HOLDER.url in message


def test_other_folders_are_free(tmp_path: Path) -> None:
    with hold_data_dir(tmp_path / "one"), hold_data_dir(tmp_path / "two"):
        assert (tmp_path / "two" / LOCK_NAME).exists()


def test_the_folder_is_private_and_free_again_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with hold_data_dir(folder) as lock:
        lock.record(HOLDER)
        assert folder.stat().st_mode & 0o777 == 0o700
    with hold_data_dir(folder) as lock:
        assert lock.previous is None


def test_the_lock_of_a_killed_launcher_is_free_and_remembers_it(tmp_path: Path) -> None:
    script = (
        "import sys, signal\n"
        "from pathlib import Path\n"
        "from chatsite.launcher.lock import Holder, hold_data_dir\n"
        "with hold_data_dir(Path(sys.argv[1])) as lock:\n"
        "    lock.record(Holder(1, 'url', '/somewhere/rill-y'))\n"
        "    print('held', flush=True)\n"
        "    signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=PROJECT, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        os.kill(holder.pid, signal.SIGKILL)
    with hold_data_dir(tmp_path) as lock:
        assert lock.previous == Holder(1, "url", "/somewhere/rill-y")


def test_a_half_written_record_does_not_lock_anybody_out(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text('{"pid": 12, "ur')
    with hold_data_dir(tmp_path) as lock:
        assert lock.previous is None
