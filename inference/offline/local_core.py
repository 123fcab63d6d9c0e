"""A core in this process: the same loop that a core process turns, turned on the event loop of its front.

Knows when the loop has to turn. Satisfies `front.core_process.CoreLink`; a step blocks the event loop, so nobody else
may live on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from inference.core.messages import Command
from inference.core.startup import Core
from inference.front.core_process import Listener

logger = logging.getLogger(__name__)


class LocalCore:
    """Steps while there is work; between two steps everybody who waits for the first gets a turn."""

    def __init__(self, core: Core, listener: Listener) -> None:
        self.gave_up = asyncio.Event()
        self.is_ready = False
        self.num_restarts = 0
        self._core = core
        self._listener = listener
        self._inbox: list[Command] = []
        self._has_mail = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.is_ready = True
        self._listener.on_ready(self._core.ready)

    async def stop(self) -> None:
        self.is_ready = False
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._core.loop.close()

    def send(self, command: Command) -> None:
        self._inbox.append(command)
        self._has_mail.set()
        if self.is_ready and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._turn(), name="core-steps")

    def check_progress(self) -> None:
        """Nothing to watch: a step that hangs hangs this thread too."""

    async def _turn(self) -> None:
        """Until there is nothing to do; the next command starts it again."""
        loop = self._core.loop
        try:
            while (rest_s := 0.0 if self._inbox else loop.rest_s()) is not None:
                await self._rest(rest_s)
                commands, self._inbox = self._inbox, []
                self._has_mail.clear()
                for pack in loop.step(commands):
                    self._listener.on_step(pack)
            loop.check_blocks()
        except Exception as error:
            logger.exception("the core's loop failed")
            self.is_ready = False
            self.gave_up.set()
            self._listener.on_lost(f"its loop failed: {error!r}")

    async def _rest(self, seconds: float) -> None:
        """Lets everybody else run, and waits for company as long as the loop wants to."""
        if not seconds:
            await asyncio.sleep(0)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._has_mail.wait()
