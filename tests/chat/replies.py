"""Reading one answer of `/v1` to its end, without the door."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from chatsite.chat.admission import admitted
from chatsite.chat.events import Ended, ReplyEvent
from chatsite.chat.pace import AT_ONCE
from chatsite.chat.reply import begun
from chatsite.chat.turn import Turn


async def reply(turn: Turn) -> AsyncGenerator[ReplyEvent]:
    """The events of one answer. Closing the iterator cancels it. Raises ReplyRefused before the first of them."""
    tail = begun(await admitted([turn]), AT_ONCE)
    try:
        while (coming := await tail.next()) is not None:
            yield coming[1]
            if isinstance(coming[1], Ended):
                return
    finally:
        await tail.close()
