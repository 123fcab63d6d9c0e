"""Whatever a client sends, it gets an error frame, the socket stays open, and nothing is stored."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatsite.accounts.models import User
from chatsite.chat import limits
from chatsite.chat.frames import decode
from chatsite.chat.models import Conversation, Message
from chatsite.chat.texts import cleaned
from chatsite.db import run_in_db
from tests.chat.conftest import open_socket
from tests.chat.socket import Socket

ID = "3f1c9a52-6f43-4f0a-9a36-0f6b8d3b1f11"
MALFORMED = {
    "no json": "{bad",
    "empty": " ",
    "a list": "[]",
    "a number": "7",
    "unknown type": '{"type":"sudo"}',
    "no type": '{"text":"x"}',
    "unknown field": '{"type":"ping","extra":1}',
    "deep nesting": "[" * 100_000,
    "deep object": '{"type":"ping","a":' * 50_000,
    "5,000 digits": '{"type":"hello","protocol":' + "9" * 5000 + "}",
    "not a number": '{"type":"hello","protocol":NaN}',
    "wrong type": '{"type":"hello","protocol":"1"}',
    "half a surrogate": f'{{"type":"send","client_message_id":"{ID}","text":"\\ud800"}}',
    "no uuid": '{"type":"stop","generation":"../../etc"}',
    "byte order mark": '\ufeff{"type":"ping"}',
    "too large": f'{{"type":"attach","generation":"{ID}"' + " " * limits.MAX_FRAME_CHARS + "}",
}


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.TokenBucket, "take", lambda self: True)


async def test_malformed_frames_are_answered_and_the_socket_stays_open(socket: Socket) -> None:
    for name, raw in MALFORMED.items():
        await socket.say_raw(raw)
        frame = await socket.hear()
        assert (frame["type"], frame["code"]) in {("error", "invalid_frame"), ("error", "frame_too_large")}, (
            name
        )
    await socket.say_raw(raw=b"\x00\xff binary")
    assert (await socket.hear())["code"] == "invalid_frame"
    _, done = await socket.ask("still here")
    assert done["state"] == "complete"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ab\x00cd", "invalid_text"),
        ("", "invalid_request"),
        (" \n ", "invalid_request"),
        ("x" * 1_000_000, "message_too_long"),
    ],
)
async def test_a_text_that_cannot_be_stored_is_refused(socket: Socket, text: str, code: str) -> None:
    name = uuid4()
    await socket.say("send", client_message_id=name, text=text)
    error = await socket.until("error", client_message_id=name)
    assert error["code"] == code
    assert await run_in_db(Message.objects.count) == 0
    assert await run_in_db(Conversation.objects.count) == 0


async def test_a_long_message_within_the_limit_is_taken(socket: Socket) -> None:
    text = "/script {}" + " " * 190_000
    accepted, _ = await socket.ask(text)
    assert (await run_in_db(Message.objects.get, pk=accepted["user_message"])).text == text


async def test_unknown_and_foreign_ids_look_the_same(socket: Socket, other_user: User) -> None:
    stranger = await open_socket(other_user)
    accepted, _ = await stranger.ask("private")
    await stranger.close()
    for conversation, message, generation in (
        (accepted["conversation"], accepted["answer"], accepted["generation"]),
        (uuid4(), uuid4(), uuid4()),
    ):
        errors = []
        await socket.say("send", client_message_id=uuid4(), text="hi", conversation=conversation)
        errors.append(await socket.until("error"))
        await socket.say("regenerate", client_message_id=uuid4(), message=message)
        errors.append(await socket.until("error"))
        for kind, field, value in (
            ("stop", "generation", generation),
            ("attach", "generation", generation),
            ("watch", "conversation", conversation),
            ("warm", "conversation", conversation),
        ):
            await socket.say(kind, **{field: value})
            errors.append(await socket.until("error"))
        assert [error["code"] for error in errors] == ["not_found"] * 6
    await socket.say("detach", generation=uuid4())
    await socket.say("ping")
    await socket.until("pong")
    assert await run_in_db(Message.objects.count) == 2


async def test_a_parent_of_another_conversation_is_refused(socket: Socket) -> None:
    first, _ = await socket.ask("one")
    second, _ = await socket.ask("two")
    await socket.say(
        "send",
        client_message_id=uuid4(),
        text="x",
        conversation=first["conversation"],
        parent=second["answer"],
    )
    assert (await socket.until("error"))["code"] == "not_found"
    await socket.say(
        "send", client_message_id=uuid4(), text="x", conversation=first["conversation"],
        parent=first["user_message"], branch=True,
    )  # fmt: skip
    assert (await socket.until("error"))["code"] == "invalid_request"


async def test_a_flood_is_warned_once_and_then_closed(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits.TokenBucket, "take", lambda self: False)
    socket = await open_socket(user)
    for _ in range(limits.MAX_ERRORS_OVER_RATE + 1):
        await socket.say("ping")
    assert (await socket.hear())["code"] == "too_many_frames"
    assert await socket.closed() == limits.CLOSE_FLOOD


@given(st.text(alphabet=st.characters(codec=None), max_size=50))
def test_cleaned_text_can_always_be_stored(text: str) -> None:
    result = cleaned(text)
    assert "\x00" not in result
    result.encode()
    assert cleaned(result) == result


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200))
def test_no_text_makes_the_decoder_raise_anything_but_its_errors(text: str) -> None:
    import msgspec

    try:
        decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return
