"""The semantic cache in the flow: the same events for a hit as for a miss, and never a cost when it is broken."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from chatsite.chat.models import Message
from chatsite.chat.semantic import embedding_by, question_of
from chatsite.chat.trial import as_asked
from chatsite.chat.turn import Caller, Turn
from chatsite.db import run_in_db
from inference.types import EngineInfo, Segment
from semcache import judge, pipeline, service
from semcache.models import CacheEntry, CacheRule
from tests.chat.only_engine import client
from tests.chat.socket import Socket


async def test_the_same_question_is_answered_from_the_cache(caching: Socket) -> None:
    _, first = await caching.ask("What is the capital of France?")
    accepted, second = await caching.ask("What is the capital of France?")
    assert (first["origin"], second["origin"]) == ("model", "exact")
    assert second["cache_age_s"] is not None
    assert second["generated_tokens"] == 0
    assert caching.text_of(second) == caching.text_of(first)
    kept = await run_in_db(Message.objects.get, pk=accepted["answer"])
    assert kept.text == caching.text_of(second)
    assert kept.token_ids, "a follow-up could not reuse the answer's ids"


async def test_regenerate_does_not_read_the_cache(caching: Socket) -> None:
    accepted, _ = await caching.ask("Tell me a fact.")
    await caching.say("regenerate", client_message_id=uuid4(), message=accepted["answer"])
    assert (await caching.until("done"))["origin"] == "model"


async def test_a_temporary_chat_neither_reads_nor_writes(caching: Socket) -> None:
    await caching.ask("Is this private?", temporary=True)
    assert await run_in_db(CacheEntry.objects.count) == 0


async def test_only_complete_answers_are_kept(caching: Socket) -> None:
    await caching.ask('/script {"text": "one two three", "fail_after": 2}')
    assert await run_in_db(CacheEntry.objects.count) == 0


async def test_a_broken_cache_costs_no_answer(caching: Socket, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(service, "lookup", broken)
    _, done = await caching.ask("Is anybody there?")
    assert (done["state"], done["origin"]) == ("complete", "model")


async def test_vectors_of_another_embedder_than_was_asked_for_are_not_taken(caching: Socket) -> None:
    """The engine may have been started again with another one since it last said what it serves."""
    asked = await as_asked("What is the capital of France?", "default", "user:1")
    assert asked is not None and asked.is_busy is not None
    assert len(await asked.embed(["What is the capital of France?"])) == 1
    assert not await asked.is_busy()
    with pytest.raises(ConnectionError, match="by now"):
        await embedding_by("the one before")(["What is the capital of France?"])


async def test_a_slow_cache_is_a_miss(caching: Socket, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    async def slow(*_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(settings, "SEMCACHE_BUDGET_MS", 20)
    monkeypatch.setattr(pipeline, "in_database", slow)
    _, done = await caching.ask("Is anybody there?")
    assert (done["state"], done["origin"]) == ("complete", "model")


def test_where_a_system_message_stands_is_part_of_the_question() -> None:
    system, first, last = (
        Segment("system", "Be brief."),
        Segment("user", "Hi"),
        Segment("user", "What is rain?"),
    )
    info = EngineInfo(
        "e", "m", "r", "t", 100, 100, "fp32", "cpu", "", 0, 1, is_trial_model=False, default_temperature=0.0
    )

    def key(*segments: Segment) -> tuple[str, str]:
        question = question_of(Turn(Caller(1, "1"), uuid4(), segments), info, "")
        return question.system_prompt, question.history

    assert key(system, first, last) != key(first, system, last)


def test_what_was_said_before_is_told_in_turn_or_not_at_all() -> None:
    info = EngineInfo(
        "e", "m", "r", "t", 100, 100, "fp32", "cpu", "", 0, 1, is_trial_model=False, default_temperature=0.0
    )
    system, said, answered = Segment("system", "s"), Segment("user", "a"), Segment("assistant", "b")

    def turns(*before: Segment) -> tuple[str, ...]:
        return question_of(Turn(Caller(1, "1"), uuid4(), (*before, Segment("user", "c"))), info, "").turns

    assert turns(system) == ()
    assert turns(system, said, answered) == ("a", "b")
    assert turns(said, answered, said, answered) == ("a", "b", "a", "b")
    for out_of_turn in ((said,), (answered, said), (said, answered, system), (said, system, answered)):
        assert turns(*out_of_turn) == ()


async def test_between_the_thresholds_the_engines_verifier_decides(
    caching: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsure() -> None:
        CacheRule.objects.update(mode="semantic", verify_similarity=0.3, accept_similarity=1.0)
        service.forget_rules()

    await run_in_db(unsure)
    await caching.ask("How do I switch on two-step login?")
    before = await client().stats()
    for verified_from, origin in ((0.3, "semantic"), (1.1, "model")):
        monkeypatch.setattr(judge, "VERIFIED_FROM", verified_from)
        _, done = await caching.ask("How can I switch on two-step login ?")
        assert done["origin"] == origin
    assert (await client().stats()).verified_pairs > before.verified_pairs
