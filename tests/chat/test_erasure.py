"""Erasing leaves nothing: rows, cached answers and kept KV, whoever erases what."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.test import AsyncClient
from django.utils import timezone

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import UsageRecord, User
from chatsite.chat import erasure, feedback, generations, outcome, receipts, record, store, tasks
from chatsite.chat.events import Durations
from chatsite.chat.generations import Progress
from chatsite.chat.models import Conversation, Generation, Message
from chatsite.chat.turn import CacheControl, Turn
from chatsite.db import run_in_db
from inference.types import Owner, Segment
from semcache import process, service
from semcache.admin.case_forms import CacheCaseForm
from semcache.models import CacheCheck, CacheEntry, CacheLook, CacheRule
from semcache.quality import comparisons
from semcache.quality.comparisons import Wanted
from semcache.quality.complaints import mark_wrong
from semcache.storage import erasure as cache_erasure
from semcache.storage.erasure import TRACES
from semcache.text.normalize import canonical, exact_key
from tests.chat.conftest import open_socket, until_somebody_waits
from tests.chat.only_engine import client
from tests.chat.replies import reply
from tests.chat.socket import Socket
from tests.patience import PATIENCE_S

STORES: tuple[Any, ...] = (Conversation, Message, Generation, CacheEntry)


async def counts() -> list[int]:
    return [await run_in_db(model.objects.count) for model in STORES]


async def keeps_kv(user: User, conversation: str) -> bool:
    """Whether the engine kept anything of the conversation; it does no longer."""
    caller = caller_of_user(user)
    return await client().forget(Owner(caller.tenant, caller.owner, conversation)) > 0


async def ask_under(user: User, kv_conversation: str) -> None:
    """A question over `/v1`, which belongs to no conversation of ours."""
    segments = (Segment("user", "What is the capital of Italy?"),)
    cache = CacheControl(may_read=False, may_store=False)
    turn = Turn(caller_of_user(user), uuid4(), segments, conversation=kv_conversation, cache=cache)
    async for _ in reply(turn):
        pass


async def test_a_user_whom_staff_delete_is_erased_from_every_store(
    caching: Socket, user: User, other_user: User
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
    await tasks._settle()
    assert not await keeps_kv(user, mine["conversation"])
    assert not await keeps_kv(user, "v1:a")
    assert await keeps_kv(other_user, theirs["conversation"])


async def test_users_whom_staff_delete_from_the_list_are_erased_too(caching: Socket, user: User) -> None:
    await caching.ask("What is the capital of France?")
    client = AsyncClient()
    await client.aforce_login(await run_in_db(User.objects.create_superuser, "root"))
    chosen = {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"}
    assert (await client.post("/admin/accounts/user/", chosen)).status_code == 302
    assert await counts() == [0, 0, 0, 0]
    assert len(await run_in_db(receipts.unfinished)) == 1, "a worker tells the others"


async def test_an_answer_in_the_making_ends_with_its_erased_user(caching: Socket, user: User) -> None:
    accepted = await caching.send('/script {"tokens": 3000, "delay_ms": 10}')
    await caching.until("delta")
    await run_in_db(erasure.erase_user_rows, user)
    await tasks._settle()
    assert not await client().cancel(accepted["generation"]), "it runs still"


async def test_an_erased_conversation_is_forgotten_by_the_engine(caching: Socket, user: User) -> None:
    kept, _ = await caching.ask("What is the capital of France?")
    gone, _ = await caching.ask("What is the capital of Spain?")
    client = AsyncClient()
    await client.aforce_login(user)
    await client.delete(f"/api/conversations/{gone['conversation']}")
    assert not await keeps_kv(user, gone["conversation"])
    assert await keeps_kv(user, kept["conversation"])
    assert await counts() == [1, 2, 1, 1]


async def test_an_answer_that_is_erased_between_its_end_and_its_being_stored_leaves_nothing(
    caching: Socket, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember = service.remember

    async def erased_just_before(*asked: Any) -> int | None:
        (conversation,) = await run_in_db(lambda: list(Conversation.objects.values_list("pk", flat=True)))
        await erasure.erase(caller_of_user(user), conversation)
        return await remember(*asked)

    monkeypatch.setattr(service, "remember", erased_just_before)
    await caching.ask("What is the capital of France?")
    assert await counts() == [0, 0, 0, 0]


async def test_who_asks_twice_at_once_to_be_erased_is_erased_once(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, erase_user = asyncio.Barrier(2), erasure.erase_user

    async def erase_together(person: User) -> UUID:
        await both.wait()
        return await erase_user(person)

    monkeypatch.setattr(erasure, "erase_user", erase_together)
    client = AsyncClient()
    await client.aforce_login(user)
    asking = [client.post("/api/me/erase", {"name": "ada"}, content_type="application/json") for _ in "ab"]
    answers = await asyncio.gather(*asking)
    assert sorted(answer.status_code for answer in answers) == [202, 401]
    assert not await run_in_db(User.objects.exists)


@pytest.mark.parametrize("what", ["conversation", "person"])
async def test_an_erasure_lets_an_answer_end_that_is_at_it(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Each would need what the other holds: the database would break off one of them."""
    caller, begun = caller_of_user(user), threading.Event()
    stored = await run_in_db(store.store_question, caller, store.Question(uuid4(), "ending"))
    finish = generations.finish

    def finish_and_wait(*ending: Any) -> Any:
        standing = finish(*ending)
        begun.set()
        until_somebody_waits()
        return standing

    def erase() -> UUID:
        begun.wait(20)
        if what == "person":
            return erasure.erase_user_rows(user)
        return erasure._erase_conversations(caller, {stored.conversation})

    monkeypatch.setattr(generations, "finish", finish_and_wait)
    ending = stored.generation, outcome.CANCELLED, Durations(), Progress()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(run_in_db(record._finish, *ending), run_in_db(erase))
    assert await counts() == [0, 0, 0, 0]
    assert await run_in_db(UsageRecord.objects.filter(generation=stored.generation).count) == 1


STORED, ASKED = "Which plans include backup?", "Which of the plans include a backup?"


async def written() -> None:
    """Until what was noted of look-ups stands in the table, whoever writes it."""
    await asyncio.gather(*process._flushes)
    await service.flush_hits()


async def leave_traces(socket: Socket) -> list[str]:
    """A stored answer, a semantic hit that was complained of, one that staff calls wrong, and all that is kept of them;
    what must be nowhere afterwards."""
    await written()  # by tests before
    await run_in_db(lambda: CacheLook.objects.all().delete())
    await run_in_db(
        lambda: CacheRule.objects.update(
            mode="semantic", verify_similarity=0.3, accept_similarity=0.3, wrong_share=1.0
        )
    )
    service.forget_rules()
    secret: list[str] = []
    for verdict in ("up", "down"):
        _, stored = await socket.ask(STORED)
        accepted, hit = await socket.ask(ASKED)
        assert hit["origin"] == "semantic"
        person = await run_in_db(
            lambda: Conversation.objects.select_related("owner").latest("created_at").owner
        )
        await feedback.rate(caller_of_user(person), UUID(accepted["answer"]), verdict)
        secret += [stored["generation"], hit["generation"]]
    await socket.ask(STORED)
    await service.flush_hits()
    entry = await run_in_db(CacheEntry.objects.get)
    await run_in_db(mark_wrong, [entry.pk])
    await socket.ask("What is the capital of France?")
    await written()
    await run_in_db(kept_by_staff)
    keys = [exact_key(canonical(text), "") for text in (STORED, ASKED, "What is the capital of France?")]
    return [*secret, *keys, entry.scope, canonical(STORED), "capital of France"]


def kept_by_staff() -> None:
    """A comparison with the stored answer and a regression case from it, as nobody in particular."""
    entry = CacheEntry.objects.latest("pk")
    comparisons.begin(Wanted("And of France?"), entry.pk, "staff")
    told = {
        "question": "And of France?",
        "expected": "hit",
        "stored_question": entry.question,
        "entry": entry.pk,
    }
    with transaction.atomic():
        assert CacheCaseForm(told).save().generation == entry.generation


def found_in_cache(secret: list[str]) -> dict[str, list[str]]:
    """Which tables of the cache hold any of these texts, in whatever column."""
    found: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        for model in apps.get_app_config("semcache").get_models():
            table = model._meta.db_table
            cursor.execute(f"SELECT row::text FROM {table} AS row")
            rows = "\n".join(row for (row,) in cursor.fetchall())
            if here := [text for text in secret if text in rows]:
                found[table] = here
    return found


async def test_nothing_of_an_erased_person_is_left_in_any_table_of_the_cache(
    caching: Socket, user: User
) -> None:
    secret = await leave_traces(caching)
    before = await run_in_db(found_in_cache, secret)
    assert {
        "semcache_cacheentry",
        "semcache_cachelook",
        "semcache_cachecomplaint",
        "semcache_cachecheck",
        "semcache_cachecomparison",
        "semcache_cachecase",
    } <= set(before)
    await run_in_db(erasure.erase_user_rows, user)
    assert await run_in_db(found_in_cache, secret) == {}
    assert await run_in_db(CacheCheck.objects.count) > 0, "evidence about the rule is nobody's"


async def test_nothing_of_erased_conversations_is_left_in_any_table_of_the_cache(
    caching: Socket, user: User
) -> None:
    secret = await leave_traces(caching)
    for conversation in await run_in_db(lambda: list(Conversation.objects.values_list("pk", flat=True))):
        await erasure.erase(caller_of_user(user), conversation)
    assert await run_in_db(found_in_cache, secret) == {}


@pytest.mark.parametrize("place", range(len(TRACES)))
async def test_a_mutant_that_forgets_a_table_would_be_noticed(
    caching: Socket, user: User, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    secret = await leave_traces(caching)
    monkeypatch.setattr(cache_erasure, "TRACES", TRACES[:place] + TRACES[place + 1 :])
    await run_in_db(erasure.erase_user_rows, user)
    assert await run_in_db(found_in_cache, secret) != {}


async def test_the_neighbours_traces_stay(caching: Socket, user: User, other_user: User) -> None:
    await leave_traces(caching)
    neighbour = await open_socket(other_user)
    await neighbour.ask(STORED)
    accepted, hit = await neighbour.ask(ASKED)
    assert hit["origin"] == "semantic"
    await feedback.rate(caller_of_user(other_user), UUID(accepted["answer"]), "down")
    await neighbour.close()
    await written()
    await run_in_db(erasure.erase_user_rows, user)
    assert set(await run_in_db(found_in_cache, [hit["generation"]])) >= {
        "semcache_cachelook",
        "semcache_cachecomplaint",
    }


async def test_an_expired_guest_is_erased_from_every_store(caching: Socket, user: User) -> None:
    accepted, _ = await caching.ask("What is the capital of France?")
    past = timezone.now() - timedelta(seconds=1)
    await run_in_db(User.objects.filter(pk=user.pk).update, is_guest=True, guest_until=past)
    assert await tasks._erase_guests() == 1
    assert await counts() == [0, 0, 0, 0]
    assert not await run_in_db(User.objects.filter(pk=user.pk).exists)
    assert not await keeps_kv(user, accepted["conversation"])
