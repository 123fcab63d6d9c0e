"""The production settings of docs/operations.md: the deployment check finds nothing, and would find what is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()


def production() -> dict[str, str]:
    """The block of the page, with the places to fill in filled in."""
    block = re.search(r"```\n(SECRET_KEY=.*?)```", PAGE, re.DOTALL)
    assert block
    lines = dict(line.split("=", 1) for line in block[1].strip().splitlines())
    lines["SECRET_KEY"] = "0123456789abcdefghij" * 3
    return {name: value.replace("...", "x" * 20) for name, value in lines.items()}


def check(environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CHAT_")}
    return subprocess.run(argv, cwd=ROOT, env=clean | environ, capture_output=True, text=True, check=False)


def test_the_deployment_check_has_nothing_to_say_about_the_settings_of_the_docs() -> None:
    done = check(production())
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout


def test_it_would_say_what_is_missing() -> None:
    """The silence above is not that of a check which did not run."""
    named = {"CHAT_ORIGINS": "http://chat.example.org", "CHAT_DEBUG": "on"}
    left = {"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "CHAT_ALLOWED_HOSTS"}
    done = check({name: value for name, value in production().items() if name in left} | named)
    assert done.returncode != 0
    for missing in ("W004", "W008", "W012", "W016", "W018"):
        assert f"security.{missing}" in done.stderr, missing


@pytest.mark.parametrize("name", sorted(production()))
def test_every_setting_of_the_block_exists(name: str) -> None:
    assert f"| `{name}` |" in (ROOT / "docs" / "configuration.md").read_text()
