"""Runs a program of `.venv-comply`, where the clients of others live. Knows none of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.livesite import PROJECT

VENV = PROJECT / ".venv-comply"


def run(
    argv: Sequence[str | Path], *, cwd: Path = PROJECT, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`argv[0]` is a program of the environment, such as `python`. What it did is the test's to judge."""
    program, *arguments = (str(part) for part in argv)
    # What the tests of the product need of Python must not leak into other programs.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [str(VENV / "bin" / program), *arguments],
        cwd=cwd, env=inherited | dict(environ or {}), capture_output=True, text=True, check=False,
    )  # fmt: skip
