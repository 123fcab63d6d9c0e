"""What every server-sent stream of answers shares: its headers, its keep-alive, and reading events with patience.

One task walks the flow, its reader may look away and come back. Closing ends the flow at once, which cancels the
generation of a `/v1` turn. Knows nothing of what events mean or how they are written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, TypeVar

KEEP_ALIVE_S = 10.0
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    # Proxies and middlewares that collect small writes would turn the stream into one block at the end.
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
}
# A reader that falls behind stops the flow's reader here; the engine's event log keeps the rest.
MAX_AHEAD = 64

T = TypeVar("T")


class Pump(Generic[T]):
    """The events of one flow. `next` gives None when nothing came in time, and raises what the flow raised."""

    def __init__(self, events: AsyncGenerator[T]) -> None:
        self._queue: asyncio.Queue[T | Exception] = asyncio.Queue(MAX_AHEAD)
        self._broken_off: Exception | None = None
        self._task = asyncio.create_task(self._walk(events))

    async def next(self, timeout_s: float) -> T | None:
        try:
            async with asyncio.timeout(timeout_s):
                item: T | Exception | None = await self._queue.get()
        except TimeoutError:
            item = None
        if self._broken_off is not None:
            raise self._broken_off
        if isinstance(item, Exception):
            raise item
        return item

    def break_off(self, error: Exception) -> None:
        """The reader gets `error` instead of whatever comes next, also of what has come already."""
        self._broken_off = error
        if not self._queue.full():  # else nobody waits
            self._queue.put_nowait(error)

    async def close(self) -> None:
        self._task.cancel()
        # Not `await self._task`: catching its cancellation would swallow our own.
        await asyncio.wait({self._task})

    async def _walk(self, events: AsyncGenerator[T]) -> None:
        async with aclosing(events):
            try:
                async for event in events:
                    await self._queue.put(event)
            except Exception as error:
                await self._queue.put(error)
