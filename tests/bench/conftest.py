"""Benches that are tried as commands: on the servers of the test run, and with its migrated database."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inference.models.tiny import write_tiny_model
from tests.livesite import migrated


@pytest.fixture
def on_these_servers() -> dict[str, str]:
    """The environment of such a command. It would start servers of its own, which is most of what a small run takes."""
    server = os.environ["DATABASE_URL"]
    migrated(server)
    return os.environ | {"TEST_DATABASE_URL": server, "TEST_REDIS_URL": os.environ["REDIS_URL"]}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model's folder; nobody writes to it."""
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "model")
