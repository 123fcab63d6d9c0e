"""What a rule that has tightened itself still serves, and how closely a rule is watched."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from semcache import judge, service
from semcache.models import CacheEntry, CacheRule
from semcache.quality import budget
from semcache.rules.policy import Rule
from semcache.rules.rulebook import MAX_AGE_S, RuleBook, read_rules
from semcache.service import Outcome, Reason, lookup
from tests.semcache import factories
from tests.semcache.factories import all_alike, question
from tests.semcache.test_budget import sampled

STORED, ASKED = "Which plans include backup?", "Which of the plans include a backup?"


@pytest.fixture(autouse=True)
def only_rule(committed) -> CacheRule:
    return factories.rule()


async def yes(pairs: list[tuple[str, str]]) -> list[float]:
    return [0.99] * len(pairs)


async def no(pairs: list[tuple[str, str]]) -> list[float]:
    return [0.2] * len(pairs)


async def tighten(state: str) -> None:
    await CacheRule.objects.aupdate(tightened=state)
    service.forget_rules()


async def answered(text: str, verify=None) -> tuple[Outcome, Reason]:
    decision = await lookup(question(text), all_alike, verify)
    return decision.outcome, decision.reason


async def test_a_rule_that_wants_a_second_opinion_serves_nothing_by_meaning_without_one():
    await factories.store(STORED, "All.", all_alike)
    assert await answered(ASKED) == (Outcome.HIT_SEMANTIC, Reason.SIMILAR)
    await tighten("verify")
    assert await answered(ASKED) == (Outcome.MISS, Reason.TIGHTENED)
    assert await answered(ASKED, yes) == (Outcome.HIT_SEMANTIC, Reason.VERIFIED)
    assert await answered(ASKED, no) == (Outcome.MISS, Reason.DOUBTED)
    assert await answered(STORED) == (Outcome.HIT_EXACT, Reason.EXACT)


async def test_agreeing_neighbours_do_not_replace_the_second_opinion(monkeypatch):
    monkeypatch.setattr(judge, "voted", lambda nearest: 0)
    await factories.store(STORED, "All.", all_alike)
    await tighten("verify")
    assert await answered("Which cheap plans include backup?") == (Outcome.MISS, Reason.TIGHTENED)


async def test_a_rule_that_became_exact_serves_the_same_words_only():
    await factories.store(STORED, "All.", all_alike)
    await tighten("exact")
    assert await answered(ASKED, yes) == (Outcome.MISS, Reason.TIGHTENED)
    assert await answered(STORED) == (Outcome.HIT_EXACT, Reason.EXACT)


async def test_what_staff_loosens_serves_by_meaning_again(only_rule):
    await factories.store(STORED, "All.", all_alike)
    await tighten("exact")
    await sync_to_async(budget.loosen)(only_rule.pk)
    service.forget_rules()
    assert await answered(ASKED) == (Outcome.HIT_SEMANTIC, Reason.SIMILAR)
    assert await CacheEntry.objects.acount() == 1


@pytest.mark.parametrize("mode", ["exact", "off"])
async def test_a_rule_whose_mode_says_no_is_not_called_tightened(mode):
    await CacheRule.objects.aupdate(mode=mode)
    await tighten("exact")
    assert (await answered(STORED))[1] is (Reason.NOT_STORED if mode == "exact" else Reason.RULE_OFF)


def test_every_process_knows_within_two_seconds(only_rule, monkeypatch):
    now = 0.0
    book = RuleBook(clock=lambda: now)
    assert book.fresh()[0].tightened == ""
    monkeypatch.setattr(budget.apps, "is_installed", lambda name: False)  # its author would stay
    sampled(only_rule, 2, 2)
    now = MAX_AGE_S + 0.01
    assert MAX_AGE_S <= 2.0 and book.fresh()[0].tightened == "verify"


def test_a_rule_is_checked_more_often_until_its_checks_are_right(only_rule):
    CacheRule.objects.update(check_share=0.1, wrong_share=1.0)
    shares = []
    for num, num_wrong in ((0, 0), (budget.CALM_AFTER, 0), (1, 1)):
        sampled(only_rule, num, num_wrong)
        shares.append(read_rules()[0].check_share)
    assert shares == [0.5, 0.1, 0.5]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_sample_has_the_size_that_the_rule_says(share):
    budget.random.seed(7)
    num_checked = sum(budget.wants_check(Rule(1, "one", check_share=share)) for _ in range(10_000))
    assert num_checked == pytest.approx(10_000 * share, abs=150)
