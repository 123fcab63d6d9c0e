"""Later messages in a conversation: found by their meaning only with all that their answer hangs on.

The embedder is the worst one: to it everything is alike, so only what these tests are about keeps conversations apart.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction

from semcache import service
from semcache.judge import VERIFIED_FROM
from semcache.look import Look
from semcache.models import CacheEntry, CacheRule
from semcache.service import Answer, Decision, Outcome, Reason, lookup, remember
from semcache.storage import store
from semcache.text import context
from semcache.text.context import Comparison
from tests.semcache import factories
from tests.semcache.factories import all_alike, all_apart, question

FLIGHT = ("I have a Saver flight to Lisbon", "Noted.")
SAME_FLIGHT = ("Hi there! I have a Saver flight to Lisbon", "Noted. Thanks!")
HOTEL = ("I have a Saver room in York", "Noted.")
FEE = "what is the cancellation fee on it?"
ALONE = "Which languages does Tunely support on Android tablets?"


@pytest.fixture(autouse=True)
def only_rule(committed) -> CacheRule:
    return factories.rule()


def after(turns: tuple[str, ...], text: str, **changes: Any) -> service.Question:
    return question(text, history="|".join(turns), turns=turns, **changes)


async def answered(turns: tuple[str, ...], text: str, answer: str, **changes: Any) -> int | None:
    asked = after(turns, text, **changes)
    whole = Answer(answer, is_complete=True, generation=uuid4())
    return await remember(await lookup(asked, all_alike), asked, whole)


async def asked_after(turns: tuple[str, ...], text: str, **changes: Any) -> Decision:
    return await lookup(after(turns, text, **changes), all_alike)


async def test_a_follow_up_is_answered_from_a_conversation_that_says_the_same():
    entry = await answered(FLIGHT, FEE, "£30.")
    decision = await asked_after(SAME_FLIGHT, FEE)
    assert decision.hit is not None
    assert (decision.hit.entry_id, decision.outcome) == (entry, Outcome.HIT_SEMANTIC)


async def test_a_follow_up_is_not_answered_from_a_conversation_about_something_else():
    await answered(FLIGHT, FEE, "£30.")
    decision = await asked_after(HOTEL, FEE)
    assert (decision.hit, decision.reason) == (None, Reason.GUARDED)
    (candidate,) = decision.candidates
    assert [verdict.check for verdict in candidate.verdicts if not verdict.passed] == ["context"]
    assert "lisbon" in candidate.verdicts[-1].why


async def test_a_cache_that_ignored_the_context_would_be_noticed(monkeypatch):
    monkeypatch.setattr(context, "compare", lambda stored, asked, text: Comparison())
    await answered(FLIGHT, FEE, "£30.")
    assert (await asked_after(HOTEL, FEE)).hit is not None


async def test_a_cache_that_forgot_to_store_the_context_would_be_noticed(monkeypatch):
    await answered(FLIGHT, FEE, "£30.")
    await sync_to_async(CacheEntry.objects.update)(context=[])
    assert (await asked_after(SAME_FLIGHT, FEE)).hit is None
    assert (await lookup(question(FEE), all_alike)).hit is not None


async def test_a_cache_that_kept_follow_ups_where_others_find_them_would_be_noticed(monkeypatch):
    await sync_to_async(CacheRule.objects.update)(sharing="public")
    key = Look.home.fget(Look(after(FLIGHT, FEE), FEE, _own_scope="any"))[1]
    monkeypatch.setattr(Look, "home", property(lambda look: (look.scopes[0], key)))
    monkeypatch.setattr(Look, "searched", property(lambda look: look.scopes))
    await answered(FLIGHT, FEE, "£30.")
    assert (await asked_after(SAME_FLIGHT, FEE, owner="user:2")).hit is not None


async def test_a_neighbour_that_is_far_is_not_compared():
    await answered(FLIGHT, FEE, "£30.")
    decision = await lookup(after(SAME_FLIGHT, FEE), all_apart)
    assert [candidate.verdicts for candidate in decision.candidates] == [()]


async def test_the_first_message_of_a_conversation_is_not_answered_from_the_middle_of_another():
    await answered(FLIGHT, FEE, "£30.")
    decision = await lookup(question(FEE), all_alike)
    assert decision.hit is None
    await factories.store(FEE, "Of what?", all_alike)
    assert (await asked_after(HOTEL, FEE)).hit is None


async def test_what_agrees_to_the_answer_before_is_found_by_the_same_history_only():
    await answered(FLIGHT, "yes please", "Cancelled.")
    assert (await asked_after(SAME_FLIGHT, "yes please")).hit is None
    again = await asked_after(FLIGHT, "yes please")
    assert again.outcome is Outcome.HIT_EXACT


@pytest.mark.parametrize("sharing", ["private", "tenant", "promoted", "public"])
async def test_what_hangs_on_a_conversation_is_its_owners_alone(only_rule, sharing):
    await sync_to_async(CacheRule.objects.update)(sharing=sharing)
    await answered(FLIGHT, FEE, "£30.")
    assert (await asked_after(FLIGHT, FEE, owner="user:2")).candidates == ()
    assert (await asked_after(SAME_FLIGHT, FEE)).hit is not None


async def test_an_answer_to_a_message_that_stands_alone_serves_other_conversations():
    await answered(FLIGHT, ALONE, "Forty.")
    for turns in (HOTEL, SAME_FLIGHT):
        assert (await asked_after(turns, ALONE)).outcome is Outcome.HIT_SEMANTIC
    assert (await lookup(question(ALONE), all_alike)).outcome is Outcome.HIT_SEMANTIC


@pytest.mark.parametrize("answer", ["On your flight, English.", "In Lisbon, forty."])
async def test_unless_the_answer_takes_up_what_was_said_before(answer):
    await answered(FLIGHT, ALONE, answer)
    assert (await asked_after(HOTEL, ALONE)).hit is None
    assert (await asked_after(FLIGHT, ALONE)).outcome is Outcome.HIT_EXACT


async def test_without_the_turns_an_answer_is_found_by_its_history_only():
    asked = question(ALONE, history="only a hash")
    await remember(await lookup(asked, all_alike), asked, Answer("Forty.", is_complete=True))
    assert (await lookup(question(ALONE), all_alike)).hit is None


async def test_a_topic_that_is_never_found_by_meaning_stays_so_in_its_follow_ups():
    await factories.arule(priority=1, mode="exact", keywords=["flight"])
    service.forget_rules()
    await answered(FLIGHT, FEE, "£30.")
    assert (await asked_after(SAME_FLIGHT, FEE)).reason is Reason.NOT_STORED
    assert (await asked_after(FLIGHT, FEE)).outcome is Outcome.HIT_EXACT


async def test_an_answer_that_hangs_on_today_ends_with_it():
    turns = ("I fly to Lisbon today", "Noted.")
    entry = await answered(turns, FEE, "£30.")
    row = await CacheEntry.objects.aget(pk=entry)
    assert not row.may_be_stale


async def test_the_words_of_a_conversation_go_with_its_answer():
    generation = uuid4()
    asked = after(FLIGHT, FEE)
    await remember(
        await lookup(asked, all_alike), asked, Answer("£30.", is_complete=True, generation=generation)
    )
    assert [row.context async for row in CacheEntry.objects.all()] == [
        ["i have a Saver flight to Lisbon", "Noted."]
    ]
    assert await sync_to_async(transaction.atomic(service.forget))([generation]) == 1
    assert not await CacheEntry.objects.aexists()
    assert (await asked_after(SAME_FLIGHT, FEE)).hit is None


@pytest.mark.parametrize(
    ("score", "reason"), [(VERIFIED_FROM, Reason.VERIFIED), (VERIFIED_FROM - 0.01, Reason.DOUBTED)]
)
async def test_a_verifier_is_asked_about_what_was_said_before_and_its_lowest_score_counts(score, reason):
    await answered(("I have a cheap flight to Lisbon", "Noted."), FEE, "£30.")
    asked: list[tuple[str, str]] = []

    async def verify(pairs):
        asked.extend(pairs)
        return [0.99, score]

    decision = await lookup(after(("I have a nice flight to Lisbon", "Noted."), FEE), all_alike, verify)
    assert asked == [(FEE, FEE), ("i have a cheap flight to Lisbon", "i have a nice flight to Lisbon")]
    assert (decision.reason, decision.candidates[0].score) == (reason, score)


async def test_no_more_pairs_are_scored_than_there_is_time_for():
    for number in range(store.NUM_NEIGHBOURS):
        turns = tuple(
            part for place in range(3) for part in (f"I like {'x' * number}{'abc'[place]}q birds", "Fine.")
        )
        await answered(turns, FEE, "£30.")
    asked: list[tuple[str, str]] = []

    async def verify(pairs):
        asked.extend(pairs)
        return [0.0] * len(pairs)

    turns = tuple(part for place in range(3) for part in (f"I like {'abc'[place]}zz birds", "Fine."))
    await lookup(after(turns, FEE), all_alike, verify)
    assert len(asked) == 16
