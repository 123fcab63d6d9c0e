"""`make comply` asks everything: what lies in a folder that is named too is easily left out by pytest."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.livesite import PROJECT

HERE = Path(__file__).resolve().parent


def test_every_check_is_asked(tmp_path: Path) -> None:
    plan = subprocess.run(
        ["make", "--dry-run", "comply", f"ARGS=--collect-only -q --passed {tmp_path / 'passed'}"],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (command,) = [line for line in plan.stdout.splitlines() if "pytest" in line and "pip" not in line]
    done = subprocess.run(["sh", "-c", command], cwd=PROJECT, capture_output=True, text=True, check=False)
    collected = {line.split("::")[0] for line in done.stdout.splitlines() if "::" in line}
    files = {str(file.relative_to(PROJECT)) for file in HERE.rglob("*.py")}
    asked = {file for file in files if Path(file).name.startswith(("test_", "check_"))}
    assert asked | {"tests/openapi/test_document.py"} <= collected, done.stdout[-2000:]
