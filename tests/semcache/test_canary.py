"""One answer that serves most of a rule's questions by meaning is pointed out, an honest mixture is not."""

from __future__ import annotations

import hashlib
import logging

import pytest
from django.urls import reverse
from django.utils import timezone

from semcache import tasks
from semcache.models import CacheEntry, CacheLook, CacheRule
from semcache.quality import canary
from tests.semcache import factories

pytestmark = pytest.mark.django_db
LIST = reverse("admin:semcache_cacherule_changelist")


@pytest.fixture
def rule(staff) -> CacheRule:
    return factories.rule(name="Weather", sharing="public", ttl_s=86_400)


def entry(rule: CacheRule, name: str) -> CacheEntry:
    return factories.row("a" * 64, hashlib.sha256(name.encode()).hexdigest(), rule)


def served(of: CacheEntry, num: int, *, first: int = 0, outcome: str = "hit-semantic") -> None:
    CacheLook.objects.bulk_create(
        CacheLook(
            asked_at=timezone.now(), rule=of.rule, outcome=outcome, reason="similar", sharing="public", tenant="t",
            model="m", scope="a" * 64, prompt_sha256=f"{number:064x}", neighbour=of.pk,
        )
        for number in range(first, first + num)
    )  # fmt: skip


def test_an_answer_to_most_of_a_rules_questions_is_a_suspect(rule):
    everywhere, other = entry(rule, "one"), entry(rule, "two")
    served(everywhere, 30)
    served(other, 10, first=100)
    (found,) = canary.suspects()
    assert (found.entry_id, found.rule, found.num_questions, found.share) == (
        everywhere.pk,
        "Weather",
        30,
        0.75,
    )


@pytest.mark.parametrize("case", ["half", "few questions", "the same words", "evicted", "older ones"])
def test_what_says_nothing_is_no_suspect(rule, case, monkeypatch):
    one, other = entry(rule, "one"), entry(rule, "two")
    match case:
        case "half":
            served(one, 30)
            served(other, 30, first=100)
        case "few questions":
            for _ in range(10):
                served(one, canary.MIN_QUESTIONS - 1)
        case "the same words":
            served(one, 30, outcome="hit-exact")
        case "evicted":
            served(one, 30)
            one.delete()
        case "older ones":
            monkeypatch.setattr(canary, "NUM_HITS", 30)
            served(one, 30)
            served(other, 15, first=100)
            served(one, 15, first=200)
    assert canary.suspects() == []


def test_a_small_rule_is_not_hidden_by_a_busy_one(rule):
    small, busy = factories.rule(name="Small", ttl_s=86_400), [entry(rule, f"{n}") for n in range(10)]
    for number, one in enumerate(busy):
        served(one, 100, first=1000 * number)
    served(entry(small, "everywhere"), 30)
    assert [found.rule for found in canary.suspects()] == ["Small"]


def test_the_page_and_the_log_point_at_it(rule, staff, caplog):
    one = entry(rule, "one")
    assert "different questions" not in staff.get(LIST).content.decode()
    served(one, 30)
    page = staff.get(LIST).content.decode()
    assert (
        "Weather: one stored answer gave 100% of the last answers by meaning, to 30 different questions"
        in page
    )
    assert reverse("admin:semcache_cacheentry_change", args=[one.pk]) in page
    with caplog.at_level(logging.WARNING):
        assert tasks.watch_entries() == 1
    assert f"entry {one.pk} " in caplog.text
