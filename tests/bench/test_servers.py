"""Which database the sites of a command are copied from."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest

from tests.livesite import MIGRATED, migrated

SAY = "import os; from tests.livesite import migrated; print(migrated(os.environ['TEST_DATABASE_URL']))"


def test_a_command_copies_what_was_migrated_before_it(on_these_servers: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAY], env=on_these_servers, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == migrated(os.environ["DATABASE_URL"])


def test_what_lies_on_another_server_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIGRATED, "postgresql://elsewhere/postgres sites_1")
    with pytest.raises(psycopg.OperationalError):
        migrated("postgresql://nobody@127.0.0.1:1/nothing")
