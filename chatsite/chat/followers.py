"""The answers one socket follows: a task each, which ends with the socket and never ends an answer.

Knows live answers and frames; how a frame is sent is the socket's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseError

from chatsite.chat import frames, limits
from chatsite.chat.following import followed
from chatsite.chat.framing import Framer
from chatsite.chat.live import HandedOver, LiveAnswer
from chatsite.chat.pace import pace_of_site
from chatsite.chat.tail import events_of
from chatsite.errors import SiteError
from chatsite.health import is_draining

logger = logging.getLogger(__name__)

# An answer that was handed over is adopted within a second or two.
REATTACH_S = 0.5

Say = Callable[[frames.FromServer], Awaitable[None]]


class Followers:
    """What the socket of `user_id` follows; `say` sends a frame when the client has room for it."""

    def __init__(self, user_id: int, say: Say) -> None:
        self._user_id = user_id
        self._say = say
        self._tasks: dict[UUID, asyncio.Task[None]] = {}

    async def follow(self, live: LiveAnswer) -> None:
        """From its first text on: for the socket that asked."""
        await self._begin(live.generation, self._from_start(live))

    async def attach(self, generation: UUID) -> None:
        """A snapshot and what comes after it."""
        await self._begin(generation, self._attached(generation))

    def detach(self, generation: UUID) -> None:
        task = self._tasks.pop(generation, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self, generation: UUID, following: Coroutine[Any, Any, None]) -> None:
        self.detach(generation)
        if len(self._tasks) >= limits.MAX_FOLLOWED:
            following.close()
            message = f"at most {limits.MAX_FOLLOWED} answers are followed at once."
            await self._say(
                frames.ErrorFrame(code="too_many_followed", message=message, generation=generation)
            )
            return
        task = asyncio.create_task(self._guarded(generation, following))
        self._tasks[generation] = task
        task.add_done_callback(lambda done: self._forget(generation, done))

    async def _guarded(self, generation: UUID, following: Coroutine[Any, Any, None]) -> None:
        try:
            await following
        except SiteError as error:
            await self._say(frames.ErrorFrame(code=error.code, message=error.message, generation=generation))
        except DatabaseError as error:
            logger.warning("%s can't be followed, the database is away: %s", generation, error)
            message = "The server cannot read anything now."
            await self._say(
                frames.ErrorFrame(code="storage_unavailable", message=message, generation=generation)
            )

    def _forget(self, generation: UUID, task: asyncio.Task[None]) -> None:
        if self._tasks.get(generation) is task:
            del self._tasks[generation]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("following %s broke", generation, exc_info=error)

    async def _from_start(self, live: LiveAnswer) -> None:
        try:
            await self._stream(live, Framer(live), 0)
        except HandedOver:
            await self._elsewhere(live.generation)

    async def _attached(self, generation: UUID) -> None:
        try:
            async with followed(self._user_id, generation) as found:
                snapshot = found.live.snapshot()
                framer = Framer(found.live)
                await self._say(framer.snapshot(found, snapshot))
                await self._stream(found.live, framer, snapshot.num_pieces)
        except HandedOver:
            await self._elsewhere(generation)

    async def _elsewhere(self, generation: UUID) -> None:
        """The answer goes on in another process; when this one stops, the page finds it there."""
        if not is_draining():
            await asyncio.sleep(REATTACH_S)
            await self._attached(generation)

    async def _stream(self, live: LiveAnswer, framer: Framer, num_seen: int) -> None:
        async with aclosing(events_of(live, pace_of_site(), num_seen)) as events:
            async for event in events:
                frame = framer.frame(event)
                if frame is not None:
                    await self._say(frame)
