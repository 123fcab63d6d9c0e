"""A conversation that is set up before its first message, and what a page tells the engine of a draft."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from django.test import AsyncClient

from chatsite.accounts.models import User
from chatsite.chat.models import Conversation
from chatsite.db import run_in_db
from inference.client import EngineClient
from inference.types import Segment
from tests.chat.api_client import KIND
from tests.chat.socket import Socket
from tests.patience import PATIENCE_S

URL = "/api/conversations"


async def prepared(client: AsyncClient, message: object, **more: Any) -> Any:
    return await client.post(URL, {"client_message_id": str(message)} | more, content_type=KIND)


async def test_the_first_message_finds_the_conversation_that_was_set_up_for_it(
    page: AsyncClient, socket: Socket
) -> None:
    message = uuid4()
    made = await prepared(page, message, system_prompt="Be brief.", parameters={"temperature": 0})
    accepted, _ = await socket.ask("hello", client_message_id=message)
    assert (made.status_code, accepted["conversation"]) == (201, made.json()["id"])
    row = await run_in_db(Conversation.objects.get)
    assert (row.system_prompt, row.parameters, row.title) == ("Be brief.", {"temperature": 0}, "hello")


async def test_setting_up_again_changes_nothing(page: AsyncClient, socket: Socket) -> None:
    message = uuid4()
    first = await prepared(page, message, system_prompt="Be brief.")
    again = await prepared(page, message, system_prompt="Be long.")
    assert (again.status_code, again.json()) == (200, first.json())
    await socket.ask("hello", client_message_id=message)
    late = await prepared(page, message)
    assert (late.json()["id"], late.json()["num_messages"]) == (first.json()["id"], 2)


async def test_an_id_of_somebody_elses_message_makes_a_conversation_of_ones_own(
    page: AsyncClient, stranger: AsyncClient
) -> None:
    message = uuid4()
    mine, theirs = [(await prepared(client, message)).json()["id"] for client in (page, stranger)]
    assert mine != theirs
    assert (await stranger.get(f"{URL}/{mine}")).status_code == 404


async def test_a_draft_is_read_early_but_never_in_a_temporary_chat(
    socket: Socket, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: asyncio.Queue[tuple[Segment, ...]] = asyncio.Queue()

    async def warm(_: EngineClient, segments: tuple[Segment, ...], owner: object) -> bool:
        warmed.put_nowait(segments)
        return True

    monkeypatch.setattr(EngineClient, "warm", warm)
    kept, _ = await socket.ask("one")
    temporary, _ = await socket.ask("two", temporary=True)
    for conversation in (temporary["conversation"], kept["conversation"]):
        await socket.say("warm", conversation=conversation, draft="and what of")
    *history, draft = await asyncio.wait_for(warmed.get(), PATIENCE_S)
    assert ([segment.role for segment in history], draft) == (
        ["user", "assistant"],
        Segment("user", "and what of"),
    )
    assert (history[0].text, warmed.empty()) == ("one", True)
    await socket.say("warm", conversation=kept["conversation"], draft="a\x00b")
    assert (await socket.until("error"))["code"] == "invalid_text"
