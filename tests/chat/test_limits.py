"""How much one socket may say, and how long it may read nothing."""

from __future__ import annotations

import asyncio

import pytest

from chatsite.accounts.models import User
from chatsite.chat import limits
from chatsite.chat.consumers import ChatConsumer
from chatsite.chat.sockets import sockets
from inference.testing import script_text
from tests.chat.conftest import open_socket
from tests.chat.socket import Socket


def test_the_bucket_gives_a_burst_and_then_a_rate() -> None:
    now = 0.0
    bucket = limits.TokenBucket(per_s=20, burst=40, clock=lambda: now)
    assert sum(bucket.take() for _ in range(100)) == 40
    now = 1.0
    assert sum(bucket.take() for _ in range(100)) == 20
    now = 1000.0
    assert sum(bucket.take() for _ in range(100)) == 40


def test_a_socket_is_calm_again_after_a_while() -> None:
    now = 0.0
    bucket = limits.TokenBucket(per_s=20, burst=40, clock=lambda: now)
    assert bucket.take()
    assert bucket.is_calm
    for _ in range(50):
        bucket.take()
    assert not bucket.is_calm
    now = 1.5
    assert bucket.take()
    assert bucket.is_calm


async def test_a_client_that_reads_nothing_is_closed_and_its_answer_goes_on(
    socket: Socket, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = await socket.send(script_text(tokens=60, delay_ms=10))
    before = set(sockets)
    deaf = await open_socket(user)
    # A connection without room never takes another message; the server's gate waits just so.
    monkeypatch.setattr(limits, "SEND_STALL_S", 0.05)
    really_send = ChatConsumer.send

    async def send(self: ChatConsumer, text_data: str) -> None:
        if self is deaf_consumer:
            await asyncio.Event().wait()
        await really_send(self, text_data=text_data)

    (deaf_consumer,) = sockets - before
    monkeypatch.setattr(ChatConsumer, "send", send)
    await deaf.say("attach", generation=accepted["generation"])
    assert await deaf.closed() == limits.CLOSE_NOT_READING
    assert (await socket.until("done"))["state"] == "complete"
