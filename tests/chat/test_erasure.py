"""Erasing leaves nothing: rows, cached answers and kept KV, whoever erases what."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import AsyncClient
from django.utils import timezone

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import User
from chatsite.chat import tasks
from chatsite.chat.models import Conversation, Generation, Message
from chatsite.chat.reply import reply
from chatsite.chat.turn import CacheControl, Turn
from chatsite.db import run_in_db
from chatsite.engine import engine
from inference.types import Owner, Segment
from semcache.models import CacheEntry
from tests.chat.conftest import open_socket
from tests.chat.socket import Socket

STORES: tuple[Any, ...] = (Conversation, Message, Generation, CacheEntry)


async def counts() -> list[int]:
    return [await run_in_db(model.objects.count) for model in STORES]


async def keeps_kv(user: User, conversation: str) -> bool:
    """Whether the engine kept anything of the conversation; it does no longer."""
    caller = caller_of_user(user)
    return await engine().forget(Owner(caller.tenant, caller.owner, conversation)) > 0


async def ask_under(user: User, kv_conversation: str) -> None:
    """A question over `/v1`, which belongs to no conversation of ours."""
    segments = (Segment("user", "What is the capital of Italy?"),)
    cache = CacheControl(may_read=False, may_store=False)
    turn = Turn(caller_of_user(user), uuid4(), segments, conversation=kv_conversation, cache=cache)
    async for _ in reply(turn):
        pass


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was left to a worker."""
    kept: list[Any] = []
    monkeypatch.setattr(
        tasks.forget_erased, "delay", lambda traces: kept.append(json.loads(json.dumps(traces)))
    )
    return kept


async def test_a_user_whom_staff_delete_is_erased_from_every_store(
    caching: Socket, user: User, other_user: User, sent: list[Any]
) -> None:
    mine, _ = await caching.ask("What is the capital of France?")
    await ask_under(user, "v1:a")
    neighbour = await open_socket(other_user)
    theirs, _ = await neighbour.ask("What is the capital of France?")
    await neighbour.close()
    client = AsyncClient()
    await client.aforce_login(await run_in_db(User.objects.create_superuser, "root"))
    url = f"/admin/accounts/user/{user.pk}/delete/"
    page = (await client.get(url)).content.decode()
    assert "capital of France" not in page, "staff do not see what people wrote"
    assert "<li>Conversations: 1</li>" in page
    assert (await client.post(url, {"post": "yes"})).status_code == 302
    assert await counts() == [1, 2, 1, 1], "the neighbour's"
    await run_in_db(tasks.forget_erased.run, *sent)
    assert not await keeps_kv(user, mine["conversation"])
    assert not await keeps_kv(user, "v1:a")
    assert await keeps_kv(other_user, theirs["conversation"])


async def test_users_whom_staff_delete_from_the_list_are_erased_too(
    caching: Socket, user: User, sent: list[Any]
) -> None:
    await caching.ask("What is the capital of France?")
    client = AsyncClient()
    await client.aforce_login(await run_in_db(User.objects.create_superuser, "root"))
    chosen = {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"}
    assert (await client.post("/admin/accounts/user/", chosen)).status_code == 302
    assert await counts() == [0, 0, 0, 0]
    assert len(sent) == 1


async def test_an_answer_in_the_making_ends_with_its_erased_user(
    caching: Socket, user: User, sent: list[Any]
) -> None:
    accepted = await caching.send('/script {"tokens": 3000, "delay_ms": 10}')
    await caching.until("delta")
    await run_in_db(tasks.erase_user, user)
    assert sent[0]["live"] == [accepted["generation"]]
    await run_in_db(tasks.forget_erased.run, *sent)
    assert not await engine().cancel(accepted["generation"]), "it runs still"


async def test_an_erased_conversation_is_forgotten_by_the_engine(caching: Socket, user: User) -> None:
    kept, _ = await caching.ask("What is the capital of France?")
    gone, _ = await caching.ask("What is the capital of Spain?")
    client = AsyncClient()
    await client.aforce_login(user)
    await client.delete(f"/api/conversations/{gone['conversation']}")
    assert not await keeps_kv(user, gone["conversation"])
    assert await keeps_kv(user, kept["conversation"])
    assert await counts() == [1, 2, 1, 1]


async def test_an_expired_guest_is_erased_from_every_store(caching: Socket, user: User) -> None:
    accepted, _ = await caching.ask("What is the capital of France?")
    past = timezone.now() - timedelta(seconds=1)
    await run_in_db(User.objects.filter(pk=user.pk).update, is_guest=True, guest_until=past)
    assert await tasks._erase_guests() == 1
    assert await counts() == [0, 0, 0, 0]
    assert not await run_in_db(User.objects.filter(pk=user.pk).exists)
    assert not await keeps_kv(user, accepted["conversation"])
