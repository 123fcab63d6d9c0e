"""The cache serves another Django project: its own settings, database, embedder and model, in a process of its own."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from tests.semcache_project import answers

ROOT = Path(__file__).resolve().parents[2]
NAME = f"semcache_project_{os.getpid()}"


@pytest.fixture
def project_database() -> Iterator[dict[str, str]]:
    """An empty database on the test run's server, as another project's settings name it."""
    server = {name: settings.DATABASES["default"][name] for name in ("USER", "PASSWORD", "HOST", "PORT")}
    given = {
        "user": server["USER"],
        "password": server["PASSWORD"],
        "host": server["HOST"],
        "port": server["PORT"],
    }
    with psycopg.connect(
        dbname="postgres", autocommit=True, **{k: v for k, v in given.items() if v}
    ) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
        yield {"ENGINE": "django.db.backends.postgresql", "NAME": NAME, **server}
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(NAME)))


def test_another_project_uses_the_cache_with_its_own_embedder(project_database):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.semcache_project"],
        cwd=ROOT,
        env=os.environ | {"PROJECT_DATABASE": json.dumps(project_database)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {
        "first": "answer 1",
        "again": "answer 1",  # by its exact text
        "alike": "answer 1",  # by meaning
        "stranger": "answer 2",
        "other": "answer 3",
        "expired": 0,
        "full_rules": 0,
        "foreign": [],
    }


def test_the_page_shows_the_code_that_is_tested():
    page = (ROOT / "docs" / "semcache" / "library.md").read_text()
    assert inspect.getsource(answers.answered) in page
    assert len(inspect.getsource(answers.answered).splitlines()) <= 12
    assert textwrap.dedent(inspect.getsource(answers.embed)).split('"""')[0] in page
