"""The machine that something was measured on, as far as its numbers are worth. Knows Linux's names of things; elsewhere
it says less."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

# More than this many busy processes beside us, and the numbers are not worth keeping.
QUIET_LOAD = 0.5


def is_quiet() -> bool:
    return os.getloadavg()[0] <= QUIET_LOAD


def processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({len(names)} cores)" if names else platform.processor()


def commit() -> str:
    """ "" outside of a repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
