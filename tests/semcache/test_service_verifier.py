"""The grey zone between the thresholds: served only with a second opinion, and never because none could be had."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from semcache import process
from semcache.breaker import Breaker
from semcache.models import CacheRule
from semcache.service import Decision, NoVerifier, Outcome, Reason, Verify, lookup
from tests.semcache import factories
from tests.semcache.factories import all_alike, question

STORED, ASKED = "how do I switch on two-step login?", "how can I turn on two-step login?"
NEARER = "how can I switch on two-step login?"


@pytest.fixture(autouse=True)
def only_rule(committed) -> CacheRule:
    return factories.rule(accept_similarity=1.0, verify_similarity=0.5)


async def grey(verify: Verify | None, text: str = ASKED) -> Decision:
    return await lookup(question(text), all_alike, verify)


def scoring(scores: dict[str, float]) -> Verify:
    async def verify(pairs: list[tuple[str, str]]) -> list[float]:
        return [scores[stored] for stored, _ in pairs]

    return verify


async def test_a_high_score_serves_and_is_told():
    stored = await factories.store(STORED, "In settings.", all_alike)
    decision = await grey(scoring({STORED: 0.97}))
    assert (decision.outcome, decision.reason) == (Outcome.HIT_SEMANTIC, Reason.VERIFIED)
    assert decision.hit is not None and decision.hit.entry_id == stored
    assert [(candidate.score, candidate.is_served) for candidate in decision.candidates] == [(0.97, True)]
    assert [name for name, _ in decision.steps] == ["rule", "exact", "embed", "nearest", "guard", "verify"]


async def test_a_low_score_is_a_miss_that_shows_it():
    await factories.store(STORED, "In settings.", all_alike)
    decision = await grey(scoring({STORED: 0.6}))
    assert (decision.outcome, decision.reason) == (Outcome.MISS, Reason.DOUBTED)
    assert [(candidate.score, candidate.is_served) for candidate in decision.candidates] == [(0.6, False)]


async def test_the_best_score_is_served_whichever_neighbour_has_it():
    await factories.store(STORED, "first", all_alike)
    await factories.store(NEARER, "second", all_alike)
    for scores, answer in (({STORED: 0.95, NEARER: 0.91}, "first"), ({STORED: 0.91, NEARER: 0.95}, "second")):
        hit = (await grey(scoring(scores))).hit
        assert hit is not None and hit.answer == answer


async def test_the_verifier_never_overrules_the_guard():
    asked: list[tuple[str, str]] = []

    async def agrees(pairs: list[tuple[str, str]]) -> list[float]:
        asked.extend(pairs)
        return [1.0] * len(pairs)

    await factories.store(STORED, "In settings.", all_alike)
    decision = await grey(agrees, "How do I switch off two-step login?")
    assert (decision.hit, decision.reason, asked) == (None, Reason.GUARDED, [])


async def test_an_accepted_neighbour_needs_no_second_opinion(only_rule):
    await CacheRule.objects.aupdate(accept_similarity=0.9)
    await factories.store(STORED, "In settings.", all_alike)

    async def never_asked(pairs: list[tuple[str, str]]) -> list[float]:
        raise AssertionError("asked without need")

    decision = await grey(never_asked)
    assert decision.reason is Reason.SIMILAR
    assert [candidate.score for candidate in decision.candidates] == [None]


async def test_without_a_verifier_the_grey_zone_is_a_miss():
    await factories.store(STORED, "In settings.", all_alike)

    async def absent(pairs: list[tuple[str, str]]) -> list[float]:
        raise NoVerifier

    for verify in (None, absent, *[absent] * 9):  # none is no fault: nothing rests after many
        decision = await grey(verify)
        assert (decision.outcome, decision.reason) == (Outcome.MISS, Reason.GREY_ZONE)


@pytest.mark.parametrize("scores", [[], [1.0, 1.0], [float("nan")]], ids=["none", "too many", "no number"])
async def test_senseless_scores_are_a_miss(scores: list[float]):
    async def verify(pairs: list[tuple[str, str]]) -> Sequence[float]:
        return scores

    await factories.store(STORED, "In settings.", all_alike)
    assert (await grey(verify)).reason is Reason.VERIFIER_FAILED


async def test_a_slow_verifier_costs_the_budget_and_only_its_own_breaker(settings, monkeypatch):
    monkeypatch.setattr(process, "verifier_breaker", Breaker(max_failures=1))
    await factories.store(STORED, "In settings.", all_alike)
    settings.SEMCACHE_BUDGET_MS = 300

    async def never(pairs: list[tuple[str, str]]) -> list[float]:
        await asyncio.Event().wait()
        return []

    decision = await grey(never)
    assert (decision.outcome, decision.reason) == (Outcome.MISS, Reason.TIMEOUT)
    settings.SEMCACHE_BUDGET_MS = 30_000
    assert (await grey(never)).reason is Reason.VERIFIER_FAILED
    assert (await grey(never, STORED)).outcome is Outcome.HIT_EXACT


async def test_a_verifier_that_fails_again_and_again_is_left_alone():
    calls = 0

    async def broken(pairs: list[tuple[str, str]]) -> list[float]:
        nonlocal calls
        calls += 1
        raise ConnectionError

    await factories.store(STORED, "In settings.", all_alike)
    for _ in range(8):
        assert (await grey(broken)).reason is Reason.VERIFIER_FAILED
    assert calls == 5
