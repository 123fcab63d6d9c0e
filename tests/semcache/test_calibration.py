"""Thresholds are proposed from what was checked: the most hits within the limit, and nothing without evidence."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.utils import timezone

from semcache.models import CacheCheck, CacheComplaint, CacheLook, CacheRule
from semcache.quality import budget, calibration_rows
from semcache.quality.calibration import Checked, Seen, accepted, num_needed, verified
from semcache.rules.rulebook import RuleBook
from tests.semcache import factories

LIMIT = 0.05


def checks(
    similarity: float, num: int, num_wrong: int = 0, score: float | None = None, **values: Any
) -> list[Checked]:
    given = {"is_sample": True} | values
    return [Checked(similarity, score, number < num_wrong, **given) for number in range(num)]


def looks(similarity: float, num: int, score: float | None = None) -> list[Seen]:
    return [Seen(similarity, score)] * num


def test_the_lowest_threshold_that_is_surely_within_the_limit_is_proposed():
    checked = checks(0.99, 200) + checks(0.973, 200, 1) + checks(0.953, 100, 40)
    found = accepted(checked, looks(0.99, 10) + looks(0.973, 7) + looks(0.953, 5), now=0.95, limit=LIMIT)
    assert found.proposed is not None
    assert (found.proposed.similarity, found.proposed.num, found.proposed.num_wrong, found.proposed.num_hits) == (
        0.97, 400, 1, 17,
    )  # fmt: skip
    assert found.proposed.high <= LIMIT
    assert (found.now.num_hits, found.now.num_wrong, found.is_change) == (22, 41, True)


def test_a_threshold_that_is_right_stays_as_it_is():
    found = accepted(checks(0.9512, 300), looks(0.96, 10), now=0.95, limit=LIMIT)
    assert found.proposed == found.now and not found.is_change


def test_nothing_is_proposed_where_nobody_has_looked():
    """The log is full of look-ups at 0.91, and none of them was ever served and checked."""
    found = accepted(checks(0.963, 300), looks(0.91, 500) + looks(0.97, 10), now=0.96, limit=LIMIT)
    assert found.proposed is not None and found.proposed.similarity >= 0.96


@pytest.mark.parametrize("num", [0, 1, 70])
def test_too_little_evidence_is_said_and_proposes_nothing(num):
    found = accepted(checks(0.99, num), looks(0.99, 10), now=0.95, limit=LIMIT)
    assert (found.proposed, found.reason, found.is_change) == (None, "too little evidence", False)


def test_enough_is_as_many_as_the_interval_takes():
    assert num_needed(LIMIT) == 73
    assert accepted(checks(0.99, 73), [], now=0.95, limit=LIMIT).proposed is not None
    assert (num_needed(0.0), num_needed(1.0)) == (0, 1)


def test_a_rule_that_is_wrong_at_every_threshold_is_told_so():
    found = accepted(checks(0.999, 300, 100), looks(0.999, 9), now=0.95, limit=LIMIT)
    assert (found.proposed, found.reason) == (None, "no threshold is within the limit")


def test_reports_are_held_against_all_hits_and_are_no_sample():
    checked = checks(0.99, 200) + checks(0.96, 5, 5, is_sample=False)
    few = accepted(checked, looks(0.96, 50) + looks(0.99, 20), now=0.95, limit=LIMIT)
    many = accepted(checked, looks(0.96, 500), now=0.95, limit=LIMIT)
    assert few.proposed is not None and many.proposed is not None
    assert (few.proposed.similarity > 0.96, many.proposed.similarity) == (True, 0.95)
    assert (many.proposed.num, many.proposed.num_reported) == (200, 5)


def test_the_verifiers_threshold_rises_above_the_scores_of_wrong_ones():
    checked = checks(0.93, 200, score=0.97) + checks(0.93, 40, 20, score=0.91)
    seen = looks(0.93, 30, 0.97) + looks(0.93, 10, 0.91) + looks(0.97, 99, 0.99)
    found = verified(checked, seen, now=(0.90, 0.9), accept=0.95, limit=LIMIT)
    assert found.proposed is not None
    assert (found.proposed.similarity, found.proposed.score, found.proposed.num_hits) == (0.93, 0.96, 30)
    assert found.now.num_hits == 40


@pytest.mark.parametrize("mutant", ["high", "reported"])
def test_a_threshold_beyond_the_bound_would_be_noticed(monkeypatch, mutant):
    from semcache.quality.calibration import Zone

    checked = checks(0.99, 200) + checks(0.96, 200, 12) + checks(0.96, 5, 5, is_sample=False)
    lax = {"high": lambda zone, limit: zone.low <= limit, "reported": lambda zone, limit: zone.high <= limit}[
        mutant
    ]
    monkeypatch.setattr(Zone, "is_within", lax)
    checked = checked if mutant == "high" else checks(0.99, 200) + checks(0.96, 5, 5, is_sample=False)
    found = accepted(checked, looks(0.96, 50), now=0.95, limit=LIMIT)
    assert found.proposed is not None and found.proposed.similarity <= 0.96


def called(*args: str) -> str:
    out = StringIO()
    call_command("cache_calibrate", *args, stdout=out)
    return out.getvalue()


@pytest.fixture
def rule(db) -> CacheRule:
    CacheRule.objects.all().delete()
    return factories.rule(name="plans", wrong_share=LIMIT, verify_similarity=0.90)


def given(rule: CacheRule, similarity: float, num: int, num_wrong: int = 0) -> None:
    now = timezone.now()
    CacheCheck.objects.bulk_create(
        CacheCheck(
            rule=rule,
            kind="sampled",
            is_wrong=number < num_wrong,
            similarity=similarity,
            checked_at=now,
            generation=uuid4(),
        )
        for number in range(num)
    )
    look(rule, similarity, num)


def look(rule: CacheRule, similarity: float, num: int = 1, **values: Any) -> None:
    same = {"outcome": "hit-semantic", "reason": "", "sharing": "public", "tenant": "t", "model": "m"}
    CacheLook.objects.bulk_create(
        CacheLook(rule=rule, similarity=similarity, asked_at=timezone.now(), **(same | values))
        for _ in range(num)
    )


def test_the_command_tells_and_changes_nothing_by_itself(rule):
    given(rule, 0.98, 200)
    given(rule, 0.955, 100, 30)
    said = called()
    assert "plans: at most 5.00% wrong; 73 checks" in said
    assert "from 0.950: wrong 30/300 checked" in said and "from 0.980: wrong 0/200 checked" in said
    assert "nothing: too little evidence" in said, "of the verifier nothing is known"
    rule.refresh_from_db()
    assert rule.accept_similarity == 0.95 and not LogEntry.objects.exists()


def test_what_is_applied_is_written_audited_and_in_force(rule):
    given(rule, 0.98, 200)
    given(rule, 0.955, 100, 30)
    assert "accept_similarity: 0.95 -> 0.98" in called("--apply")
    assert RuleBook().fresh()[0].accept_similarity == 0.98
    assert LogEntry.objects.get().change_message == "calibrated: accept_similarity: 0.95 -> 0.98"
    assert "left as it is" in called("--apply")
    assert LogEntry.objects.count() == 1


def test_a_rule_that_was_edited_meanwhile_is_left_alone(rule, monkeypatch):
    given(rule, 0.98, 200)
    given(rule, 0.955, 100, 30)
    read = calibration_rows.seen

    def edited(rule_id: int) -> list[Seen]:
        CacheRule.objects.update(accept_similarity=0.999)
        return read(rule_id)

    monkeypatch.setattr(calibration_rows, "seen", edited)
    assert "left as it is" in called("--apply")
    rule.refresh_from_db()
    assert rule.accept_similarity == 0.999


def test_json_tells_the_same(rule):
    given(rule, 0.98, 200)
    (found,) = json.loads(called("--json"))
    assert (found["rule"], found["limit"], found["num_needed"]) == ("plans", LIMIT, 73)
    assert found["accept"]["proposed"]["num"] == 200 and found["verify"]["reason"] == "too little evidence"
    assert found["changes"] == {}


def test_only_rules_by_meaning_are_looked_at_and_unknown_names_are_refused(rule):
    factories.rule(name="payment", mode="exact")
    assert "payment" not in called() and "plans" in called("--rule", "plans")
    with pytest.raises(CommandError, match="payment"):
        called("--rule", "payment")


def test_shadow_looks_and_complaints_are_evidence_too(rule):
    look(rule, 0.97, agreement=0.95, outcome="miss")
    look(rule, 0.96, agreement=0.1, outcome="miss")
    entry = factories.row("a" * 64, "stored", rule)
    look(rule, 0.955, 2, neighbour=entry.pk, prompt_sha256="asked")
    for why, asked in (("asked-fresh", "asked"), ("thumbs-down", "asked2")):
        CacheComplaint.objects.create(
            scope="a" * 64, asked_sha256=asked, stored_sha256="stored", why=why, created_at=timezone.now()
        )
    budget.record(rule.pk, "thumb", True, similarity=0.951)
    budget.record(rule.pk, "thumb", False, similarity=0.952)
    found = sorted((one.similarity, one.is_wrong, one.is_sample) for one in calibration_rows.checked(rule.pk))
    assert found == [(0.951, True, False), (0.955, True, False), (0.96, True, True), (0.97, False, True)]
