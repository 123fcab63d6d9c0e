"""Starts the core at full priority from a front that has stepped back.

Knows that Linux keeps a nice value per thread and that a child inherits it from the thread that starts it. One
thread therefore stays at the old priority and starts every core, also after a crash. (Where the value belongs to
the process, as on macOS, a restarted core would start with the front's: harmless, only slower.)
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Spawner:
    """Make it before any other thread exists: threads made later inherit the front's nice value."""

    def __init__(self, front_nice: int = 0) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
        self._thread.submit(os.getpid).result()  # the thread exists from now on
        if front_nice:
            os.nice(front_nice)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Does it on the thread of the old priority."""
        return self._thread.submit(work)

    @staticmethod
    def spawn(argv: Sequence[str], environ: dict[str, str], fd: int) -> subprocess.Popen[bytes]:
        """A child that inherits `fd` and nothing else, with the priority of the calling thread. Raises OSError."""
        return subprocess.Popen(argv, env=os.environ | environ, pass_fds=[fd], stdin=subprocess.DEVNULL)

    async def wait(self, process: subprocess.Popen[bytes], timeout_s: float) -> int:
        """Its exit status; it is killed when it does not end in time."""

        def wait_or_kill() -> int:
            try:
                return process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                return process.wait()

        return await asyncio.get_running_loop().run_in_executor(self._thread, wait_or_kill)
