"""The access matrix of the socket: every frame type a page can send has a row; one without a row fails."""

from __future__ import annotations

import typing
from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from chatsite.accounts.models import User
from chatsite.chat import frames
from chatsite.chat.limits import CLOSE_SIGNED_OUT
from chatsite.chat.models import Conversation, Generation, Message
from chatsite.db import run_in_db
from tests.chat.conftest import open_socket
from tests.chat.socket import Socket
from tests.patience import PATIENCE_S

# By frame type: its fields, with the owner's ids in braces, and what a stranger hears.
REFUSED = "error"
NOTHING = "pong"  # only the answer to the ping that follows
ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "hello": ({"protocol": frames.PROTOCOL}, "welcome"),
    "ping": ({}, "pong"),
    "send": ({"client_message_id": "{new}", "text": "hi", "conversation": "{conversation}"}, REFUSED),
    "regenerate": ({"client_message_id": "{new}", "message": "{answer}"}, REFUSED),
    "continue": ({"client_message_id": "{new}", "message": "{answer}"}, REFUSED),
    "stop": ({"generation": "{generation}"}, REFUSED),
    "attach": ({"generation": "{generation}"}, REFUSED),
    "detach": ({"generation": "{generation}"}, NOTHING),
    "watch": ({"conversation": "{conversation}"}, REFUSED),
    "warm": ({"conversation": "{conversation}"}, REFUSED),
}
OWN_ONLY = [kind for kind, (_, heard) in ROWS.items() if heard == REFUSED]


def test_every_frame_type_has_its_row() -> None:
    kinds = {msgspec.inspect.type_info(frame).tag for frame in typing.get_args(frames.FromClient)}  # type: ignore[attr-defined]
    assert kinds == set(ROWS)


async def filled(kind: str, owner: Socket) -> dict[str, Any]:
    """The fields of a frame that speaks of the owner's finished answer."""
    accepted, _ = await owner.ask("a private question")
    values = accepted | {"new": str(uuid4())}
    return {
        name: value.format(**values) if isinstance(value, str) and value.startswith("{") else value
        for name, value in ROWS[kind][0].items()
    }


async def first_heard(socket: Socket, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    await socket.say(kind, **fields)
    if ROWS[kind][1] == NOTHING and kind != "ping":
        await socket.say("ping")
    return await socket.hear()


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("stranger_is", ["another person", "staff", "a guest"])
async def test_a_stranger_gets_nothing_of_the_owners(
    engine: Any,
    user: User,
    other_user: User,
    kind: str,
    stranger_is: str,
) -> None:
    if stranger_is == "staff":
        await run_in_db(User.objects.filter(pk=other_user.pk).update, is_staff=True, is_superuser=True)
    if stranger_is == "a guest":
        until = timezone.now() + timedelta(days=1)
        await run_in_db(User.objects.filter(pk=other_user.pk).update, is_guest=True, guest_until=until)
    owner, stranger = await open_socket(user), await open_socket(other_user)
    heard = await first_heard(stranger, kind, await filled(kind, owner))
    assert heard["type"] == ROWS[kind][1]
    assert "private" not in str(stranger.seen)
    await owner.close()
    await stranger.close()


@pytest.mark.parametrize("kind", OWN_ONLY)
async def test_the_owner_is_heard(engine: Any, user: User, kind: str) -> None:
    owner = await open_socket(user)
    fields = await filled(kind, owner)
    await owner.say(kind, **fields)
    await owner.say("ping")
    await owner.until("pong")
    assert not [frame for frame in owner.seen if frame["type"] == "error"]
    await owner.close()


@pytest.mark.parametrize("kind", OWN_ONLY)
async def test_foreign_and_unknown_sound_the_same(
    engine: Any, user: User, other_user: User, kind: str
) -> None:
    owner, stranger = await open_socket(user), await open_socket(other_user)
    foreign = await filled(kind, owner)
    unknown = foreign | {
        name: str(uuid4()) for name in ("conversation", "generation", "message") if name in foreign
    }
    said = [await first_heard(stranger, kind, fields) for fields in (foreign, unknown)]
    assert (said[0]["code"], said[0]["message"]) == (said[1]["code"], said[1]["message"])
    await owner.close()
    await stranger.close()


@pytest.mark.parametrize("cookie", ["", "sessionid=", "sessionid=nobody", "sessionid=" + "x" * 3000])
async def test_nobody_gets_in_without_a_session(engine: Any, cookie: str) -> None:
    socket = Socket(cookie)
    connected, code = await socket.channel.connect(timeout=PATIENCE_S)
    if connected:
        code = await socket.closed()
    assert code == 4401


async def test_an_api_key_opens_no_socket(engine: Any, user: User) -> None:
    from chatsite.accounts.keys import create_key

    _, secret = await run_in_db(create_key, user, "test", ["chat"])
    socket = Socket("")
    socket.channel.scope["headers"].append((b"authorization", f"Bearer {secret}".encode()))
    connected, code = await socket.channel.connect(timeout=PATIENCE_S)
    if connected:
        code = await socket.closed()
    assert code == 4401


async def test_strangers_leave_no_rows(engine: Any, user: User, other_user: User) -> None:
    owner, stranger = await open_socket(user), await open_socket(other_user)
    fields = {kind: await filled(kind, owner) for kind in OWN_ONLY}

    def counts() -> tuple[int, int, int]:
        return Conversation.objects.count(), Message.objects.count(), Generation.objects.count()

    before = await run_in_db(counts)
    for kind in OWN_ONLY:
        await first_heard(stranger, kind, fields[kind])
    assert await run_in_db(counts) == before
    await owner.close()
    await stranger.close()


@pytest.mark.parametrize("kind", [kind for kind in ROWS if kind not in ("hello", "detach")])
async def test_a_socket_whose_session_ended_gets_nothing_any_more(
    engine: Any, user: User, other_user: User, kind: str
) -> None:
    owner = await open_socket(user)
    fields = await filled(kind, owner)
    await run_in_db(Session.objects.all().delete)
    await owner.say(kind, **fields)
    assert await owner.closed() == CLOSE_SIGNED_OUT
    await owner.close()
