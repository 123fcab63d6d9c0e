"""The command line: what an operator sees when it cannot start, and the servers alone."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from chatsite.launcher.__main__ import main
from chatsite.launcher.errors import EX_CONFIG
from tests.patience import PATIENCE_S

from .processes import PROJECT, wait_for_end


def start_services(data_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "chatsite.launcher", "services", "--throwaway"],
        cwd=PROJECT,
        env=os.environ | {"DATA_DIR": str(data_dir), "DATABASE_URL": "", "REDIS_URL": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_taken_port_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("PORT", str(port))
        monkeypatch.setenv("DATA_DIR", str(tmp_path))
        assert main(["run"]) != 0
    assert f"port {port} cannot be used" in capsys.readouterr().out


def test_a_wrong_setting_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PORT", "eighty")
    assert main(["run"]) == EX_CONFIG
    assert "PORT='eighty'" in capsys.readouterr().out


@pytest.mark.slow
def test_services_end_with_their_input_and_a_second_start_is_refused(tmp_path: Path) -> None:
    with start_services(tmp_path) as first:
        assert first.stdout is not None
        addresses = json.loads(first.stdout.readline())
        with psycopg.connect(addresses["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        second = start_services(tmp_path)
        _, refusal = second.communicate(timeout=PATIENCE_S)
        assert second.returncode != 0
        assert f"already running in {tmp_path}: process {first.pid}" in refusal
        first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 0


@pytest.mark.slow
def test_killed_services_leave_no_server_and_the_next_start_clears_up(tmp_path: Path) -> None:
    with start_services(tmp_path) as first:
        assert first.stdout is not None
        addresses = json.loads(first.stdout.readline())
        runtime = Path(addresses["REDIS_URL"].removeprefix("unix://")).parent
        postmaster = int((tmp_path / "postgres" / "postmaster.pid").read_text().split()[0])
        os.kill(first.pid, signal.SIGKILL)
        first.communicate(timeout=PATIENCE_S)
    assert wait_for_end(postmaster)
    with start_services(tmp_path) as second:
        assert second.stdout is not None
        assert json.loads(second.stdout.readline()) != addresses
        assert not runtime.exists()
        second.communicate(timeout=PATIENCE_S)


@pytest.mark.slow
def test_two_copies_run_side_by_side(tmp_path: Path) -> None:
    with start_services(tmp_path / "one") as one, start_services(tmp_path / "two") as two:
        assert one.stdout is not None
        assert two.stdout is not None
        first, second = json.loads(one.stdout.readline()), json.loads(two.stdout.readline())
        assert first["DATABASE_URL"] != second["DATABASE_URL"]
        for copy in (one, two):
            copy.communicate(timeout=PATIENCE_S)
    assert (one.returncode, two.returncode) == (0, 0)
