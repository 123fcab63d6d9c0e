"""What these tests need of processes: waiting for the end of one that is not our child, commands that are trivial."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
from pathlib import Path

from chatsite.launcher.process import Command
from chatsite.launcher.steps import Service

PROJECT = Path(__file__).resolve().parents[2]
READY = re.compile("^ready")
STAYS = "import signal; print('ready', flush=True); signal.pause()"
IGNORES_TERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + STAYS


def wait_for_end(pid: int, within_s: float = 10.0) -> bool:
    """True when process `pid` is gone, or goes within the given time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], within_s)[0])
    finally:
        os.close(descriptor)


def python(script: str, *arguments: str, death_signal: signal.Signals = signal.SIGKILL) -> Command:
    return Command(argv=(sys.executable, "-c", script, *arguments), cwd=PROJECT, death_signal=death_signal)


def service(name: str, script: str = STAYS, after: tuple[str, ...] = (), **options: object) -> Service:
    """A service that is ready when it says so."""
    return Service(name, python(script), after, ready_line=READY, **options)  # type: ignore[arg-type]
