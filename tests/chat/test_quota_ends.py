"""However an answer ends, what it held of its quotas is settled once, with what the ledger has of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db.models import F, Sum
from django.utils import timezone

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import Quota, QuotaHold, QuotaUse, UsageRecord, User
from chatsite.accounts.quotas import settlement
from chatsite.accounts.quotas.standing import standings_of
from chatsite.accounts.tasks import settle_quotas
from chatsite.chat import erasure, generations, owed, record, store
from chatsite.chat.adoption import adopt_orphans
from chatsite.chat.ask import ask
from chatsite.chat.events import Durations
from chatsite.chat.generations import Progress
from chatsite.chat.models import Conversation, Generation, State
from chatsite.chat.outcome import Outcome
from chatsite.chat.running import Running, running
from chatsite.chat.tail import events_of
from chatsite.chat.turn import Turn
from chatsite.db import run_in_db
from chatsite.errors import ReplyRefused
from inference.errors import QueueFull
from inference.testing import script_text
from inference.types import Segment, Usage
from tests.chat.conftest import open_socket, until_somebody_waits
from tests.chat.only_engine import client
from tests.chat.replies import reply
from tests.chat.socket import Socket
from tests.patience import PATIENCE_S

YEAR = 366 * 86_400
LONG = script_text(tokens=2000, delay_ms=10)


def limit(user: User, **fields: Any) -> None:
    most = {"max_requests": 1000, "max_tokens": 1_000_000} | fields
    Quota.objects.create(applies="user", user=user, window_s=YEAR, **most)


def counts(user: User) -> tuple[int, int, int]:
    """Requests, tokens and what is still held, as the quota has them."""
    (one,) = standings_of(caller_of_user(user))
    return one.requests, one.tokens, one.held


def booked(user: User) -> tuple[int, int, int]:
    rows = UsageRecord.objects.filter(user=user)
    tokens = rows.aggregate(sum=Sum(F("prompt_tokens") + F("generated_tokens")))["sum"] or 0
    return rows.count(), tokens, 0


async def settled(user: User) -> tuple[int, int, int]:
    async with asyncio.timeout(PATIENCE_S):
        while await run_in_db(QuotaHold.objects.exists):
            await asyncio.sleep(0.02)
    return await run_in_db(counts, user)


async def begun(socket: Socket) -> UUID:
    accepted = await socket.send(LONG)
    await socket.until("delta")
    return UUID(accepted["generation"])


async def stopped(socket: Socket, monkeypatch: pytest.MonkeyPatch) -> None:
    await socket.say("stop", generation=await begun(socket))
    await socket.until("done")


async def stopped_by_another_hand(socket: Socket, monkeypatch: pytest.MonkeyPatch) -> None:
    await run_in_db(generations.move, await begun(socket), State.STOPPED)
    await socket.until("done")


async def failed(socket: Socket, monkeypatch: pytest.MonkeyPatch) -> None:
    await socket.ask(script_text(text="one two three four", fail_after=2))


async def handed_over_and_adopted(socket: Socket, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = await socket.send(script_text(tokens=60, delay_ms=10))
    await socket.until("delta")
    await running().abandon(UUID(accepted["generation"]))
    adopter = Running()
    assert await adopt_orphans(adopter) == 1
    await adopter.drain(20)


async def lost_by_a_front_that_started_again(socket: Socket, monkeypatch: pytest.MonkeyPatch) -> None:
    user_id = await run_in_db(lambda: User.objects.get(username="ada"))
    row = await run_in_db(store.store_question, caller_of_user(user_id), store.Question(uuid4(), "lost"))
    await run_in_db(generations.release, row.generation)
    adopter = Running()
    await adopt_orphans(adopter)
    await adopter.drain(20)
    monkeypatch.setattr(owed, "ON_ITS_WAY", timedelta(0))
    assert await owed.settle_owed() == 1


End = Callable[[Socket, pytest.MonkeyPatch], Awaitable[None]]


@pytest.mark.parametrize(
    "end",
    [stopped, stopped_by_another_hand, failed, handed_over_and_adopted, lost_by_a_front_that_started_again],
)
async def test_every_end_is_settled_as_the_ledger_has_it(
    socket: Socket, user: User, monkeypatch: pytest.MonkeyPatch, end: End
) -> None:
    await run_in_db(limit, user)
    await socket.ask("hello")
    await end(socket, monkeypatch)
    counted = await settled(user)
    assert counted == await run_in_db(booked, user)
    assert counted[0] == 2 and counted[1] > 0


async def test_the_next_question_waits_for_an_answer_that_ends_and_not_the_other_way_round(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both count in the same quota, and both belong to one conversation."""
    await run_in_db(limit, user)
    caller, counted = caller_of_user(user), threading.Event()
    first = await run_in_db(store.store_question, caller, store.Question(uuid4(), "first"))
    settle = settlement.settle

    def settle_and_wait(*used: Any) -> None:
        settle(*used)
        counted.set()
        until_somebody_waits()

    def ask_next() -> store.Stored:
        counted.wait(20)
        return store.store_question(caller, store.Question(uuid4(), "next", first.conversation))

    monkeypatch.setattr(settlement, "settle", settle_and_wait)
    ending = first.generation, Outcome(State.STOPPED, usage=Usage(prompt_tokens=3)), Durations(), Progress()
    async with asyncio.timeout(PATIENCE_S):
        standing, following = await asyncio.gather(run_in_db(record._finish, *ending), run_in_db(ask_next))
    assert standing == State.STOPPED and following.parent == first.answer


async def test_a_hit_and_a_follower_cost_a_request_and_no_tokens(caching: Socket, user: User) -> None:
    await run_in_db(limit, user)
    question = script_text(tokens=30, delay_ms=10)
    other = await open_socket(user)
    await asyncio.gather(caching.ask(question), other.ask(question))
    alone = await settled(user)
    await other.ask(question)
    assert await settled(user) == (3, alone[1], 0)
    assert await run_in_db(UsageRecord.objects.exclude(origin="model").count) == 2
    await other.close()


async def test_an_engine_without_room_costs_nothing(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(request: Any) -> Any:
        raise QueueFull("full", retry_after_s=1)

    await run_in_db(limit, user)
    monkeypatch.setattr(client(), "submit", full)
    turn = Turn(caller_of_user(user), uuid4(), (Segment("user", "hi"),))
    with pytest.raises(ReplyRefused):
        async with aclosing(reply(turn)) as events:
            await anext(events)
    asked = await ask(caller_of_user(user), store.Question(uuid4(), "hi"))
    assert asked.live is not None
    async for _ in events_of(asked.live):
        pass
    assert await settled(user) == (0, 0, 0)


async def test_who_erases_an_answer_in_the_making_pays_for_it(socket: Socket, user: User) -> None:
    await run_in_db(limit, user)
    await begun(socket)
    conversation = await run_in_db(Conversation.objects.get)
    await erasure.erase(caller_of_user(user), conversation.pk)
    requests, tokens, held = await settled(user)
    assert not await run_in_db(Generation.objects.exists)
    assert (requests, held) == (1, 0) and tokens > len(LONG)


async def test_what_is_stopped_after_its_process_died_is_charged_in_full(engine: Any, user: User) -> None:
    await run_in_db(limit, user)
    row = await run_in_db(store.store_question, caller_of_user(user), store.Question(uuid4(), "lost"))
    assert await run_in_db(generations.move, row.generation, State.STOPPED)
    hold = await run_in_db(QuotaHold.objects.get, pk=row.generation)
    assert hold.tokens > 0 and hold.expires_at > timezone.now() + timedelta(minutes=10)
    await run_in_db(QuotaHold.objects.update, expires_at=timezone.now())
    assert await run_in_db(settle_quotas) == 1
    assert await run_in_db(counts, user) == (1, hold.tokens, 0)


async def test_a_refused_question_in_a_conversation_is_told_until_when(socket: Socket, user: User) -> None:
    await run_in_db(limit, user, max_requests=1)
    await socket.ask("hello")
    name = uuid4()
    await socket.say("send", client_message_id=name, text="again")
    error = await socket.until("error", client_message_id=name)
    resets_at = (await run_in_db(standings_of, caller_of_user(user)))[0].resets_at
    assert error["code"] == "quota_exceeded" and error["retry_after_s"] > 60
    assert error["resets_at"] == resets_at.isoformat().replace("+00:00", "Z")


async def test_the_same_message_again_is_neither_counted_nor_refused(socket: Socket, user: User) -> None:
    await run_in_db(limit, user, max_requests=1)
    name = uuid4()
    first = await socket.send("hello", client_message_id=name)
    await socket.until("done")
    assert (await socket.send("hello", client_message_id=name))["generation"] == first["generation"]
    assert (await settled(user))[0] == 1


async def test_an_end_that_settles_nothing_is_noticed(
    socket: Socket, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant of all of the above."""
    monkeypatch.setattr(settlement, "settle", lambda generation, used_tokens: None)
    await run_in_db(limit, user)
    await socket.ask("hello")
    assert await run_in_db(counts, user) != await run_in_db(booked, user)
    assert await run_in_db(QuotaUse.objects.exclude(reserved_tokens=0).exists)
