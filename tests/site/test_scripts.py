"""The page's scripts: their pure parts are tested by Node's own runner, where Node is there; each has one job."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 150


@pytest.mark.skipif(
    shutil.which("node") is None, reason="Node is not installed; the browser tests cover the page"
)
def test_the_pure_parts_pass_their_own_tests() -> None:
    ran = subprocess.run(
        ["node", "--test", "tests/js/"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]


def test_every_module_has_one_job() -> None:
    modules = [path for path in (ROOT / "static").rglob("*.js") if "vendor" not in path.parts]
    assert modules
    too_long = {path.name: n for path in modules if (n := len(path.read_text().splitlines())) > MAX_LINES}
    assert too_long == {}
