"""`kill -9` of the launcher leaves no child."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from .processes import PROJECT, wait_for_end

LAUNCHER = """
import asyncio
from chatsite.launcher.console import Console
from chatsite.launcher.steps import Service
from chatsite.launcher.supervisor import Supervisor
from tests.launcher.processes import IGNORES_TERM, READY, STAYS, python
import re, signal

TELLS = "import os; print('pid', os.getpid(), flush=True); "

async def main():
    plan = (
        Service("polite", python(TELLS + STAYS, death_signal=signal.SIGTERM), ready_line=READY),
        Service("stubborn", python(TELLS + IGNORES_TERM), ready_line=READY),
    )
    supervisor = Supervisor(plan, Console())
    await supervisor.start()
    print("all ready", flush=True)
    await supervisor.watch()

asyncio.run(main())
"""


def test_no_child_survives_a_killed_launcher() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        children = []
        for line in launcher.stdout:
            children += [int(pid) for pid in re.findall(r"\| pid (\d+)", line)]
            if line == "all ready\n":
                break
        os.kill(launcher.pid, signal.SIGKILL)
    assert len(children) == 2
    assert [wait_for_end(pid) for pid in children] == [True, True]
