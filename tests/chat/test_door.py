"""Who may open the socket: signed-in people, from our own pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.models import Session

from chatsite.accounts.models import User
from chatsite.chat import limits
from chatsite.chat.origin import normalized
from chatsite.db import run_in_db
from tests.chat.conftest import cookie_of, open_socket
from tests.chat.socket import Socket

FOREIGN = [
    "http://localhost:8001",
    "https://localhost:8000",
    "https://evil.example",
    "http://localhost:8000.evil.example",
    "http://localhost:8000@evil.example",
    "http://localhost:8000/",
    "http://localhost:8000:1",
    "http://localhost:99999",
    "http://localhost",
    "http://localhost:8000?x=1",
    "http://localhost:8000#x",
    "http://user:password@localhost:8000",
    "http://127.0.0.1.evil.example:8000",
    "http://evil.example/http://localhost:8000",
    "http://[::1]:8001",
    "http://localhost\x00:8000",
    "http://localhost:8000, http://evil.example",
    "ws://localhost:8000",
    "file://localhost:8000",
    "null",
    "",
]


@pytest.mark.parametrize(
    "origin", ["http://localhost:8000", "http://LOCALHOST:8000", "HTTP://localhost:8000", "http://[::1]:8000"]
)
async def test_our_own_pages_may_open_a_socket(engine: Any, user: User, origin: str) -> None:
    socket = Socket(await run_in_db(cookie_of, user), origin)
    await socket.open()
    await socket.say("hello", protocol=1)
    welcome = await socket.until("welcome")
    assert welcome["model"] == "scripted"
    await socket.close()


async def test_foreign_pages_may_not(engine: Any, user: User, caplog: pytest.LogCaptureFixture) -> None:
    """AU-01: whatever is not exactly ours is refused at the handshake, with one log line; so is no Origin, and two."""
    cookie = await run_in_db(cookie_of, user)
    sockets = {origin: Socket(cookie, origin) for origin in FOREIGN}
    sockets["none at all"], sockets["two of them"] = Socket(cookie), Socket(cookie)
    del sockets["none at all"].channel.scope["headers"][0]
    sockets["two of them"].channel.scope["headers"].append((b"origin", b"http://localhost:8000"))
    for origin, socket in sockets.items():
        caplog.clear()
        connected, _ = await socket.channel.connect()
        assert not connected, origin
        assert len([record for record in caplog.records if record.name == "chatsite.chat.origin"]) == 1


@pytest.mark.parametrize(
    "origin", ["http:", "http://", "ftp://localhost", "http://a b", "http://[::1", "//localhost", "x"]
)
def test_what_is_no_origin_is_none(origin: str) -> None:
    assert normalized(origin) is None or normalized(origin) == ("http", "a b", 80)


async def test_without_a_session_the_socket_closes_as_signed_out(engine: Any, user: User) -> None:
    for cookie in ("", "sessionid=unknown", 'sessionid="', "x=1; y"):
        socket = Socket(cookie)
        await socket.open()
        assert await socket.closed() == limits.CLOSE_SIGNED_OUT


async def test_signing_out_ends_the_socket_at_its_next_frame(engine: Any, user: User) -> None:
    socket = await open_socket(user)
    await run_in_db(Session.objects.all().delete)
    await socket.say("ping")
    assert await socket.closed() == limits.CLOSE_SIGNED_OUT
