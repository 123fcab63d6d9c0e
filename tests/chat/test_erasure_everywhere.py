"""An erased person's words stand nowhere: every table, the broker, the engine, and a receipt that tells the truth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis
from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.test import AsyncClient
from django.utils import timezone

from chatsite.accounts import brake, departure, keys
from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import Identity, Quota, QuotaUse, Tenant, UsageRecord, User
from chatsite.chat import erasure as chat_erasure
from chatsite.chat import receipts, tasks
from chatsite.chat.models import (
    AgainOrder,
    Conversation,
    ErasureReceipt,
    ExportLink,
    Feedback,
    Generation,
    Message,
    PromptTemplate,
    ShareLink,
)
from chatsite.chat.turn import Caller, Turn
from chatsite.db import run_in_db
from inference.client import EngineClient
from inference.errors import EngineUnavailable, GenerationUnknown
from inference.types import Owner, Segment
from semcache import flights, service
from semcache.models import (
    CacheCase,
    CacheComparison,
    CacheComplaint,
    CacheEntry,
    CacheFlight,
    CacheLook,
    CacheRule,
)
from semcache.storage import erasure as cache_erasure
from semcache.text.normalize import canonical, exact_key
from tests.chat.conftest import cookie_of
from tests.chat.everywhere import keys_with, tables_with
from tests.chat.only_engine import client
from tests.chat.replies import reply
from tests.chat.socket import Socket

KIND = "application/json"
# The ledger keeps its counts, under a generation's id that leads nowhere any more.
KEPT = {"accounts_usagerecord"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second telling may follow the first."""
    monkeypatch.setattr(receipts, "AGAIN_AFTER", timedelta(0))


def make_person(name: str) -> User:
    tenant, _ = Tenant.objects.get_or_create(is_default=True, defaults={"slug": "default", "name": "Default"})
    word = f"zq{name}canary"  # stands in everything that the person writes
    return User.objects.create_user(word, f"{word}@example.org", tenant=tenant, last_name=word)


def fill(person: User) -> list[str]:
    """Something of the person in every table that can hold it; the opaque names that must be nowhere afterwards."""
    rule = CacheRule.objects.create(name=f"for {person.pk}", sharing="public")
    word, answer = person.username, fill_conversation(person)
    generation = answer.generation.pk
    AgainOrder.objects.create(run=uuid4(), generation=answer.generation, order={"served": word})
    PromptTemplate.objects.create(owner=person, title=word, body=word)
    ExportLink.objects.create(sha256=word, user=person, form="x", expires_at=timezone.now())
    key, _secret = keys.create_key(person, word, ["chat"])
    Identity.objects.create(user=person, issuer="https://id.example.org", subject=word)
    Quota.objects.create(applies="user", user=person, window_s=60, max_requests=1)
    for subject in (f"user:{person.pk}", f"key:{key.pk}"):
        QuotaUse.objects.create(subject=subject, window_s=60, window_start=timezone.now())
    brake.may_try("192.0.2.1", person.username)
    session = cookie_of(person).partition("=")[2]
    fill_audit(person, str(key.pk))
    fill_cache(rule, person, generation)
    record = {"user": person, "tenant": person.tenant, "model": "m", "origin": "model", "state": "complete"}
    UsageRecord.objects.create(generation=generation, api_key=key, **record)
    names = (
        person.username,
        str(generation),
        str(key.pk),
        str(answer.pk),
        f'"user:{person.pk}"',
        f"user:{person.pk},",
    )
    return [*names, session, brake._digest(person.username)]


def fill_conversation(person: User) -> Message:
    word = person.username
    row = Conversation.objects.create(
        owner=person, title=word, system_prompt=word, tags=[word], parameters={"stop": [word]}
    )
    asked = Message.objects.create(conversation=row, role="user", text=f"First {word}?")
    answer = Message.objects.create(conversation=row, parent=asked, role="assistant", text=word)
    Feedback.objects.create(message=answer, user=person, verdict="down", reason=word)
    shown = [{"role": "user", "text": word}]
    ShareLink.objects.create(
        sha256=word, owner=person, conversation=row, title=word, messages=shown, num_messages=1
    )
    now = timezone.now()
    Generation.objects.create(message=answer, user=person, state="complete", finished_at=now, deadline_at=now)
    return answer


def fill_audit(person: User, key: str) -> None:
    """Lines about the person and one of its keys, and a line by it."""
    user_type = ContentType.objects.get_for_model(User)
    key_type = ContentType.objects.get_by_natural_key("accounts", "apikey")
    staff = User.objects.create_user(f"staff-{person.pk}", tenant=person.tenant)
    common = {"action_flag": CHANGE, "object_repr": person.username, "change_message": person.username}
    LogEntry.objects.create(user=staff, content_type=user_type, object_id=str(person.pk), **common)
    LogEntry.objects.create(user=staff, content_type=key_type, object_id=key, **common)
    by_person = {"action_flag": CHANGE, "object_repr": "a rule", "change_message": "ttl_s: 1 -> 2"}
    LogEntry.objects.create(user=person, content_type=user_type, object_id="0", **by_person)


def fill_cache(rule: CacheRule, person: User, generation: UUID) -> None:
    word, owner = person.username, caller_of_user(person).owner
    scope, shared, now = "a" * 56 + f"{rule.pk:08x}", "b" * 56 + f"{rule.pk:08x}", timezone.now()
    common = {"rule": rule, "tenant": "1", "model_revision": "m", "created_at": now}
    entry = CacheEntry.objects.create(
        scope=scope, prompt_sha256="1" * 64, question=word, answer=word, embedding=[1.0, 0.0], sharing="private",
        owner=owner, generation=generation, context=[word], expires_at=now + timedelta(days=1), **common,
    )  # fmt: skip
    look = {
        "asked_at": now,
        "outcome": "miss",
        "reason": "",
        "sharing": "public",
        "tenant": "1",
        "model": "m",
    }
    CacheLook.objects.create(scope=scope, prompt_sha256="2" * 64, generation=generation, **look)
    # In words that may be everybody's: of the stored answer, beside another question, and of a first question.
    CacheLook.objects.create(scope=scope, prompt_sha256="1" * 64, question=word, **look)
    CacheLook.objects.create(
        scope=shared,
        prompt_sha256="3" * 64,
        neighbour=entry.pk,
        neighbour_question=word,
        question="x",
        **look,
    )
    first = canonical(f"First {word}?")
    CacheLook.objects.create(scope=shared, prompt_sha256=exact_key(first, ""), question=first, **look)
    CacheComplaint.objects.create(
        scope=scope, asked_sha256="4" * 64, reading_sha256="", stored_sha256="1" * 64, why="x",
        generations=[generation], created_at=now,
    )  # fmt: skip
    # What staff compare: the person's answer, a question as the person would ask it, and the person as staff.
    text = {"stored_question": word, "stored_answer": word, "question": word, "entry": 1, "created_at": now}
    for of in ({"generation": generation}, {"owner": owner}, {"author": str(person.pk)}):
        CacheComparison.objects.create(**({"author": "0", "state": "done"} | of | text))
    for number, of in enumerate(({"generation": generation}, {"owner": owner})):
        CacheCase.objects.create(
            question=word,
            expected="hit",
            stored_question=word,
            definition=f"{number}{word}"[:64],
            created_at=now,
            **of,
        )
    CacheFlight.objects.create(
        scope=scope, prompt_sha256="5" * 64, leader=generation, aboard=[generation], expires_at=now
    )


async def everything(person: User) -> UUID:
    """Erases the person's rows as staff would, and lets a worker tell the rest twice."""
    receipt = await run_in_db(chat_erasure.erase_user_rows, person)
    await tasks._settle()
    await tasks._settle()
    return receipt


async def test_nothing_of_an_erased_person_stands_in_any_table(engine: Any) -> None:
    person, other = await run_in_db(make_person, "ada"), await run_in_db(make_person, "bob")
    names = await run_in_db(fill, person)
    neighbours = [
        other.username,
        f"user:{other.pk}",
        await run_in_db(lambda: str(fill_conversation(other).pk)),
    ]
    filled = await run_in_db(tables_with, names)
    assert len(filled) >= 13, "the search finds what is there"
    receipt = await everything(person)
    assert await run_in_db(tables_with, names) == KEPT
    assert await run_in_db(tables_with, [person.username]) == set()
    assert await run_in_db(tables_with, neighbours) >= {"accounts_user", "chat_message"}
    shown = (await AsyncClient().get(f"/api/receipts/{receipt}")).json()
    told = {line["store"]: (line["erased"], line["kept"]) for line in shown["stores"]}
    assert shown["finished_at"] is not None and all(line["at"] for line in shown["stores"])
    assert told == {
        "account": (1, 0), "again": (1, 0), "answers": (0, 0), "audit": (3, 0), "cache": (1, 0),
        "conversations": (1, 0), "event_logs": (None, 0), "exports": (1, 0), "feedback": (1, 0),
        "flights": (1, 0), "generations": (1, 0),
        "identities": (1, 0), "keys": (1, 0), "kv": (0, 0), "messages": (2, 0), "quota_counts": (2, 0),
        "quotas": (1, 0), "sessions": (1, 0), "shares": (1, 0), "sign_in_counts": (2, 0), "templates": (1, 0),
        "usage": (0, 1),
    }  # fmt: skip
    assert f"user:{person.pk}" not in json.dumps(shown) and person.username not in json.dumps(shown)
    audit = await run_in_db(lambda: list(LogEntry.objects.values_list("user__username", "change_message")))
    assert (departure.ERASED, "ttl_s: 1 -> 2") in audit, "what was done to the site stays known"


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "sign-in counts": lambda patch: patch.setattr(brake, "forget_name", lambda name: 0),
    "sessions": lambda patch: patch.setattr(departure, "end_sessions", lambda user: 0),
    "audit": lambda patch: patch.setattr(departure, "_forget_in_audit", lambda person, keys: 0),
    "quota counts": lambda patch: patch.setattr(departure, "_subjects", lambda person, keys: []),
    "cache": lambda patch: patch.setattr(service, "forget", lambda *_: 0),
    "comparisons": lambda patch: patch.setattr(
        cache_erasure, "TRACES", [one for one in cache_erasure.TRACES if "comparison" not in one]
    ),
    "cases by their answer": lambda patch: patch.setattr(
        cache_erasure, "TRACES", [one for one in cache_erasure.TRACES if "cachecase" not in one]
    ),
    "cases by their asker": lambda patch: patch.setattr(cache_erasure, "PERSON", cache_erasure.PERSON[:1]),
    "tried in somebodys name": lambda patch: patch.setattr(
        cache_erasure, "PERSON", [one.replace(" OR owner = %(owner)s", "") for one in cache_erasure.PERSON]
    ),
    "begun by staff": lambda patch: patch.setattr(
        cache_erasure, "PERSON", [one.replace("author = %(author)s OR ", "") for one in cache_erasure.PERSON]
    ),
    "flights": lambda patch: patch.setattr(flights, "forget", lambda _: 0),
    "answers of the log": lambda patch: patch.setattr(
        cache_erasure, "SHARED_TRACES", cache_erasure.SHARED_TRACES[1:]
    ),
    "neighbours of the log": lambda patch: patch.setattr(
        cache_erasure, "SHARED_TRACES", cache_erasure.SHARED_TRACES[::2]
    ),
    "words of the log": lambda patch: patch.setattr(
        cache_erasure, "SHARED_TRACES", cache_erasure.SHARED_TRACES[:2]
    ),
}


async def test_a_mutant_that_forgets_a_store_would_be_noticed(engine: Any) -> None:
    for name, mutate in MUTANTS.items():
        person = await run_in_db(make_person, "".join(filter(str.isalpha, name)))
        names = await run_in_db(fill, person)
        with pytest.MonkeyPatch.context() as patch:
            mutate(patch)
            await everything(person)
        assert await run_in_db(tables_with, names) > KEPT, f"nobody noticed that {name} were left"


async def knows(generation: str) -> bool:
    """Whether the engine keeps the log of an answer."""
    try:
        return bool([event async for event in client().attach(generation)])
    except GenerationUnknown:
        return False


async def ask_over_v1(user: User, tenant: str, conversation: str) -> str:
    """A question that belongs to no conversation of ours; its generation."""
    caller = Caller(user.pk, tenant)
    turn = Turn(
        caller, uuid4(), (Segment("user", f"Who was {conversation or 'Ada'}?"),), conversation=conversation
    )
    async for _ in reply(turn):
        pass
    return str(turn.generation)


async def test_the_engine_keeps_neither_logs_nor_kv_also_of_a_business_line_that_the_person_left(
    caching: Socket, user: User
) -> None:
    accepted, done = await caching.ask("What is the capital of France?")
    former = str(user.tenant_id)
    bare, named = await ask_over_v1(user, former, ""), await ask_over_v1(user, former, "v1:a")
    moved = await run_in_db(Tenant.objects.create, slug="new", name="New")
    await run_in_db(User.objects.filter(pk=user.pk).update, tenant=moved)
    assert [await knows(one) for one in (done["generation"], bare, named)] == [True] * 3
    await everything(user)
    assert [await knows(one) for one in (done["generation"], bare, named)] == [False] * 3
    for conversation in (accepted["conversation"], "v1:a"):
        assert await client().forget(Owner(former, f"user:{user.pk}", conversation)) == 0


async def test_a_receipt_waits_for_an_engine_that_is_away_and_for_what_comes_late(
    caching: Socket, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted, done = await caching.ask("What is the capital of France?")
    page = AsyncClient()
    await page.aforce_login(user)

    async def away(self: EngineClient, owner: Owner) -> int:
        raise EngineUnavailable("the engine is away")

    with monkeypatch.context() as patch:
        patch.setattr(EngineClient, "forget", away)
        answer = await page.delete(f"/api/conversations/{accepted['conversation']}")
        await tasks._settle()
    assert answer.status_code == 202
    url = answer.json()["url"]
    shown = (await AsyncClient().get(url)).json()
    missing = {line["store"] for line in shown["stores"] if line["at"] is None}
    assert (shown["finished_at"], missing) == (None, {"kv", "answers", "event_logs", "flights"})
    # What another process noted before the erasure is written after it.
    look = {
        "reason": "",
        "sharing": "private",
        "tenant": "1",
        "model": "m",
        "scope": "a" * 64,
        "outcome": "miss",
    }
    late = {"generation": done["generation"], "prompt_sha256": "1" * 64, "asked_at": timezone.now()}
    await run_in_db(lambda: CacheLook.objects.create(**look, **late))
    assert await tasks._settle() == 1
    assert (await AsyncClient().get(url)).json()["finished_at"] is not None
    assert await run_in_db(tables_with, [done["generation"]]) == KEPT
    assert await run_in_db(lambda: ErasureReceipt.objects.get().pending) == []
    assert not await knows(done["generation"])


async def test_the_broker_holds_nothing_of_an_erasure(caching: Socket, user: User) -> None:
    word = "zqwordofada"
    accepted, _ = await caching.ask(f"What is {word}?")
    with redis.Redis.from_url(settings.CONFIG.redis_url) as broker:
        broker.rpush("control", word)
        assert keys_with(word) == {b"control"}
        broker.delete("control")
    page = AsyncClient()
    await page.aforce_login(user)
    assert (await page.delete(f"/api/conversations/{accepted['conversation']}")).status_code == 202
    assert await asyncio.to_thread(keys_with, word) == set()
    assert await run_in_db(tables_with, [word]) == set()
