"""One person who opens a conversation, reads and types for a while, and then asks, or leaves without a word.

Speaks the page's frames; knows the three ways of reading ahead and when their frames leave the page.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import uuid4

from tests.bench.web.clients import AnswerBroken, Door, Socket

ENDS_WITHIN_S = 120.0
NUM_DRAFTS = 3  # pauses in typing that are long enough to be told


class Ahead(StrEnum):
    """What is read before Send."""

    OFF = "off"
    ON_OPEN = "on open"
    ON_TYPE = "on type"


@dataclass(frozen=True, slots=True)
class Visit:
    """`asks` is false for somebody who only looks."""

    conversation: str
    question: str
    ahead: Ahead
    stays_s: float
    asks: bool = True


@dataclass(frozen=True, slots=True)
class Wait:
    """Seconds from Send to the first text and to the end, and what the answer says of its prompt."""

    ttft_s: float
    took_s: float
    prompt_tokens: int
    reused_tokens: int


async def visit(door: Door, one: Visit) -> Wait | None:
    socket = await Socket.opened(door)
    try:
        await _stay(socket, one)
        return await asyncio.wait_for(_asked(socket, one), ENDS_WITHIN_S) if one.asks else None
    finally:
        socket.close()


async def _stay(socket: Socket, one: Visit) -> None:
    """Typing takes the second half of the time; the last words are sent before they have settled."""
    warm = {"type": "warm", "conversation": one.conversation}
    if one.ahead is not Ahead.OFF:
        socket.say(warm)
    await asyncio.sleep(one.stays_s / 2)
    typed = one.question.split()
    for number in range(1, NUM_DRAFTS + 1):
        await asyncio.sleep(one.stays_s / 2 / (NUM_DRAFTS + 1))
        if one.ahead is Ahead.ON_TYPE:
            firm = typed[: len(typed) * number // NUM_DRAFTS - 5]
            socket.say(warm | {"draft": " ".join(firm)})
    await asyncio.sleep(one.stays_s / 2 / (NUM_DRAFTS + 1))


async def _asked(socket: Socket, one: Visit) -> Wait:
    sent_at = time.monotonic()
    socket.say(
        {
            "type": "send",
            "client_message_id": str(uuid4()),
            "conversation": one.conversation,
            "text": one.question,
        }
    )
    first_at: float | None = None
    async for at_s, frame in _frames(socket):
        if frame["type"] == "delta" and first_at is None:
            first_at = at_s
        elif frame["type"] == "error":
            raise AnswerBroken(str(frame))
        elif frame["type"] == "done":
            if frame["state"] != "complete" or first_at is None:
                raise AnswerBroken(str(frame))
            took_s = at_s - sent_at
            return Wait(first_at - sent_at, took_s, frame["prompt_tokens"], frame["reused_tokens"])
    raise AnswerBroken("the socket was closed")


async def _frames(socket: Socket) -> AsyncIterator[tuple[float, dict[str, Any]]]:
    async for at_s, payload in socket.texts():
        yield at_s, json.loads(payload)
