"""Reading a stream with patience leaves nothing behind and hides no cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from chatsite.chat.events import ReplyEvent
from chatsite.sse import Pump


async def test_closing_ends_the_flow_and_passes_its_own_cancellation_on() -> None:
    is_ending, may_end = asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> AsyncGenerator[ReplyEvent]:
        try:
            await asyncio.Event().wait()
            yield  # type: ignore[misc]  # never reached: it only makes this a generator
        finally:
            is_ending.set()
            await may_end.wait()

    pump = Pump(slow_to_end())
    assert await pump.next(0) is None
    closing = asyncio.create_task(pump.close())
    await is_ending.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    may_end.set()
    await pump.close()
