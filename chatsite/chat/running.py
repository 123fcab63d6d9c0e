"""The answers this process is making: one task each, belonging to no socket.

Closing a socket leaves them alone; draining ends or hands over what is left. One registry per event loop, because
celery tasks have loops of their own. Knows no database and no engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from uuid import UUID
from weakref import WeakKeyDictionary

from chatsite.chat.live import HandedOver, LiveAnswer
from chatsite.metrics import live_replies

logger = logging.getLogger(__name__)

Work = Callable[[LiveAnswer], Awaitable[None]]


class Running:
    """Live answers by generation. A task's end, whatever it is, is told to the followers."""

    def __init__(self) -> None:
        self._answers: dict[UUID, LiveAnswer] = {}
        self._tasks: dict[UUID, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def get(self, generation: UUID) -> LiveAnswer | None:
        return self._answers.get(generation)

    def begin(self, live: LiveAnswer, work: Work) -> LiveAnswer:
        """Runs `work(live)` to its end; the answer that is already being made when there is one."""
        if live.generation in self._answers:
            return self._answers[live.generation]
        self._answers[live.generation] = live
        task = asyncio.create_task(work_to_end(live, work), name=f"answer {live.generation}")
        self._tasks[live.generation] = task
        # A callback, because a task that is cancelled before its first step runs no line of its own.
        task.add_done_callback(lambda _: self._forget(live))
        live_replies.inc()
        return live

    async def abandon(self, generation: UUID) -> None:
        """Cancels the task and waits for what it does about that."""
        task = self._tasks.get(generation)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def drain(self, patience_s: float) -> None:
        """Waits for the answers to end; those that do not in time are handed over."""
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()), timeout=patience_s)
        await asyncio.gather(*(self.abandon(generation) for generation in list(self._tasks)))

    def _forget(self, live: LiveAnswer) -> None:
        if not live.is_over:
            live.fail(HandedOver())
        live_replies.dec()
        del self._answers[live.generation], self._tasks[live.generation]


async def work_to_end(live: LiveAnswer, work: Work) -> None:
    """`work(live)`; what it did not expect is logged, and its row is adopted like that of a dead process."""
    try:
        await work(live)
    except Exception:
        logger.exception("answer %s was left in the middle", live.generation)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Running] = WeakKeyDictionary()


def running() -> Running:
    """The registry of the running loop."""
    return _by_loop.setdefault(asyncio.get_running_loop(), Running())
