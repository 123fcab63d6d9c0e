"""A command in a second terminal finds the servers of the site that runs in the same data folder."""

from __future__ import annotations

import os
from pathlib import Path

from chatsite.launcher.joining import joining_environment
from chatsite.launcher.lock import Holder, hold_data_dir


def test_nothing_changes_where_no_site_runs(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "LANG": "C"}
    assert joining_environment(environ) == environ


def test_a_command_gets_the_addresses_and_secrets_of_the_running_site(tmp_path: Path) -> None:
    with hold_data_dir(tmp_path) as lock:
        lock.record(Holder(os.getpid(), "http://127.0.0.1:8000/", "/run/somewhere"))
        environ = joining_environment({"DATA_DIR": str(tmp_path)})
    assert "%2Frun%2Fsomewhere%2Fpostgres" in environ["DATABASE_URL"]
    assert "/run/somewhere/" in environ["REDIS_URL"]
    assert environ["ENGINE_ADDRESS"] == "unix:/run/somewhere/engine.sock"
    assert environ["SECRET_KEY"] == (tmp_path / "secret-key").read_text().strip()


def test_what_was_given_wins(tmp_path: Path) -> None:
    with hold_data_dir(tmp_path) as lock:
        lock.record(Holder(os.getpid(), "http://127.0.0.1:8000/", "/run/somewhere"))
        given = {"DATA_DIR": str(tmp_path), "REDIS_URL": "redis://elsewhere/0", "SECRET_KEY": "mine"}
        environ = joining_environment(given)
    assert (environ["REDIS_URL"], environ["SECRET_KEY"]) == ("redis://elsewhere/0", "mine")


def test_the_record_of_a_dead_launcher_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "launcher.lock").write_text('{"pid": 1, "url": "http://x/", "runtime_dir": "/run/gone"}')
    assert "DATABASE_URL" not in joining_environment({"DATA_DIR": str(tmp_path)})
