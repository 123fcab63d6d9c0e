"""Regression cases: judged by the decision that every question gets, and again whenever the rules have changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, transaction
from django.utils import timezone

from semcache import process, service, tasks
from semcache.decision import Reason
from semcache.explain import decision_on
from semcache.lending import Asked
from semcache.models import CacheCase, CacheEntry, CacheLook, CacheRule
from semcache.quality import cases
from semcache.quality.cases import Problem
from tests.semcache import factories
from tests.semcache.lender import as_asked
from tests.semcache.test_admin_try import OPPOSITE, SAME, lent, stored

pytestmark = pytest.mark.django_db
__all__ = ["lent", "stored"]

ALIKE = SAME | {"text": "Please, how do I switch on two-step login?"}
LONG_AGO = timezone.now()


@pytest.fixture(autouse=True)
def here(settings) -> None:
    settings.SEMCACHE_RUN_BY = ""


def case_of(asked: dict[str, str], expected: str, **values: str) -> CacheCase:
    case = CacheCase(
        question=asked["text"], tenant=asked["tenant"], owner=asked["owner"], expected=expected,
        created_at=LONG_AGO, **values,
    )  # fmt: skip
    case.definition = cases.definition_of(case)
    case.save()
    return case


def run(case: CacheCase) -> CacheCase:
    assert cases.run(case, cases.rules_key())
    case.refresh_from_db()
    return case


def went(asked: dict[str, str], expected: str, **values: str) -> list[str]:
    case = run(case_of(asked, expected, **values))
    assert case.state == ("failed" if case.problems else "passed") and case.ran_at
    return case.problems


Q = "How do I switch on two-step login?"


@pytest.mark.parametrize(
    ("asked", "expected", "values", "problems"),
    [
        (SAME, "hit", {}, []),
        (ALIKE, "hit", {"rule": "Everything", "stored_question": Q, "answer_part": "so."}, []),
        (ALIKE, "hit", {"stored_question": "How do I  switch on two-step login? "}, []),
        (ALIKE, "hit", {"stored_question": "How do I pay?"}, [Problem.QUESTION]),
        (ALIKE, "hit", {"answer_part": "other"}, [Problem.ANSWER]),
        (ALIKE, "hit", {"stored_question": "x", "answer_part": "y"}, [Problem.QUESTION, Problem.ANSWER]),
        (ALIKE, "hit", {"rule": "Weather"}, [Problem.RULE]),
        (ALIKE, "miss", {}, [Problem.OUTCOME]),
        (ALIKE, "bypass", {}, [Problem.OUTCOME]),
        (OPPOSITE, "miss", {}, []),
        (OPPOSITE, "miss", {"rule": "Everything"}, []),
        (OPPOSITE, "hit", {"rule": "Weather"}, [Problem.OUTCOME, Problem.RULE]),
        (OPPOSITE, "never", {"stored_question": Q}, []),
        (SAME, "never", {"stored_question": Q}, [Problem.SERVED]),
        (ALIKE, "never", {"stored_question": Q}, [Problem.SERVED]),
        (ALIKE, "never", {"answer_part": "SO"}, [Problem.SERVED]),
        (ALIKE, "never", {"stored_question": "How do I pay?"}, []),
        (ALIKE, "never", {"stored_question": Q, "answer_part": "other"}, []),
        (ALIKE, "never", {"answer_part": "other", "rule": "Weather"}, [Problem.RULE]),
    ],
)
def test_a_case_fails_by_what_is_not_as_expected(stored, asked, expected, values, problems):
    assert went(asked, expected, **values) == problems


def test_what_no_rule_takes_is_a_bypass(stored):
    CacheRule.objects.update(pattern="weather")
    service.forget_rules()
    assert went(SAME, "bypass") == []
    assert went(SAME, "bypass", rule="Everything") == [Problem.RULE]


def test_what_came_is_kept_and_no_word_of_it(stored):
    case = run(case_of(ALIKE, "hit"))
    assert (case.got_outcome, case.got_reason) == ("hit-semantic", "similar")
    assert (case.got_rule, case.got_entry) == ("Everything", stored.pk)


def test_the_model_that_it_is_asked_of_counts(stored):
    CacheRule.objects.update(model="small")
    service.forget_rules()
    assert went(SAME, "hit", model="small") == []
    assert went(SAME, "bypass", model="large") == []


def test_nothing_is_counted(stored):
    run(case_of(SAME, "hit"))
    assert process.hits.flush() == 0 and CacheLook.objects.count() == 0


@pytest.mark.parametrize("reason", sorted(cases.UNDECIDED))
def test_trouble_of_the_cache_judges_nothing(stored, monkeypatch, reason):
    case = run(case_of(OPPOSITE, "miss"))
    real = cases.decided

    async def troubled(*args: Any) -> Any:
        decision = await real(*args)
        assert decision is not None
        return replace(decision, reason=Reason(reason))

    monkeypatch.setattr(cases, "decided", troubled)
    CacheCase.objects.update(expected="hit", rules_key="")
    case.refresh_from_db()
    assert not cases.run(case, cases.rules_key())
    case.refresh_from_db()
    assert (case.state, case.rules_key) == ("passed", "")


def test_without_anybody_to_ask_nothing_is_judged(stored, settings, monkeypatch):
    case = case_of(SAME, "miss")
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    assert not cases.run(case, "key")

    async def away(*_: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(cases, "decided", away)
    assert not cases.run(case, "key")
    case.refresh_from_db()
    assert case.state == "new"


# What makes cases due.

CHANGES: dict[str, Callable[[CacheRule], Any]] = {
    "threshold": lambda rule: CacheRule.objects.update(accept_similarity=0.99),
    "mode": lambda rule: CacheRule.objects.update(mode="exact"),
    "priority": lambda rule: CacheRule.objects.update(priority=7),
    "enabled": lambda rule: CacheRule.objects.update(is_enabled=False),
    "tightened": lambda rule: CacheRule.objects.update(tightened="verify"),
    "keywords": lambda rule: CacheRule.objects.update(keywords=["x"]),
    "deleted": lambda rule: CacheRule.objects.all().delete(),
    "another": lambda rule: factories.rule(name="Another"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_the_rules_has_the_cases_run_again_once(stored, change):
    case_of(SAME, "hit")
    assert tasks.run_cases() == 1
    assert tasks.run_cases() == 0
    CHANGES[change](CacheRule.objects.get())
    assert tasks.run_cases() == 1
    assert tasks.run_cases() == 0


def test_what_decides_nothing_changes_nothing(stored):
    case_of(SAME, "hit")
    tasks.run_cases()
    CacheRule.objects.update(tags=["x"], capacity=7, check_share=0.5, wrong_share=0.5)
    assert tasks.run_cases() == 0


def test_they_are_judged_by_the_new_rules_and_not_by_those_that_the_process_knows(stored):
    case = case_of(SAME, "hit")
    tasks.run_cases()
    CacheRule.objects.update(mode="off")
    assert process.rules.known(), "the worker has read the rules just now"
    tasks.run_cases()
    case.refresh_from_db()
    assert (case.state, case.got_reason) == ("failed", "rule-off")


def test_a_change_during_a_run_makes_them_due_again(stored, monkeypatch):
    case_of(SAME, "hit")
    real = cases.decided

    async def decided(*args: Any) -> Any:
        decision = await real(*args)
        await sync_to_async(CacheRule.objects.update)(mode="off")
        return decision

    monkeypatch.setattr(cases, "decided", decided)
    assert tasks.run_cases() == 1
    monkeypatch.setattr(cases, "decided", real)
    assert tasks.run_cases() == 1
    assert CacheCase.objects.get().state == "failed"


def test_a_case_that_is_changed_while_it_runs_keeps_its_new_meaning(stored):
    case = case_of(SAME, "hit")
    CacheCase.objects.update(expected="miss", definition="changed")
    assert not cases.run(case, "key")
    assert CacheCase.objects.get().state == "new"


def test_staff_may_have_some_run_again_or_all(stored):
    one, other = case_of(SAME, "hit"), case_of(OPPOSITE, "miss")
    tasks.run_cases()
    assert (cases.mark_due([one.pk]), tasks.run_cases()) == (1, 1)
    assert (cases.mark_due(), tasks.run_cases()) == (2, 2)
    assert (cases.mark_due([]), tasks.run_cases()) == (0, 0)
    assert other.pk


def test_a_run_ends_with_its_time_and_the_next_goes_on(stored):
    for text in "abc":
        case_of(SAME | {"text": f"What is {text}?"}, "miss")
    clock = iter([0.0, 1.0, 2.0, 3.0]).__next__
    assert cases.run_due(1.5, clock) == 2
    assert cases.run_due(time.monotonic() + 60) == 1


async def is_busy() -> bool:
    return True


async def busy(text: str, tenant: str, owner: str, model: str) -> Asked | None:
    asked = await as_asked(text, tenant, owner, model)
    return asked and replace(asked, is_busy=is_busy)


def test_a_busy_engine_is_left_alone_unless_staff_asks(stored, settings):
    case_of(SAME, "hit")
    settings.SEMCACHE_ASKED_BY = f"{__name__}.busy"
    assert tasks.run_cases() == 1, "a new one goes at once"
    CacheRule.objects.update(priority=7)
    assert tasks.run_cases() == 0
    cases.mark_due()
    assert tasks.run_cases() == 1


def test_while_nobody_can_be_asked_no_case_is_tried(stored, settings, monkeypatch):
    case_of(SAME, "hit")
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    monkeypatch.setattr(cases, "run", lambda *_: pytest.fail("was tried"))
    assert tasks.run_cases() == 0


# What the database holds cases to.


@pytest.mark.parametrize(
    ("expected", "values"),
    [("miss", {"stored_question": "a"}), ("bypass", {"answer_part": "a"}), ("never", {})],
)
def test_a_case_names_an_answer_where_one_may_be_served(db, expected, values):
    with pytest.raises(IntegrityError), transaction.atomic():
        case_of(SAME, expected, **values)


def test_no_case_is_there_twice(db):
    case_of(SAME, "hit")
    with pytest.raises(IntegrityError), transaction.atomic():
        case_of(SAME, "hit", note="another note")
    for name in cases.DEFINING:
        value = {"expected": "miss"}.get(name, "x")
        values = {"text": SAME["text"], **SAME} | {"text": value} if name == "question" else SAME
        changed = {} if name in ("question", "tenant", "owner", "expected") else {name: value}
        values = values | ({name: value} if name in ("tenant", "owner") else {})
        case_of(values, value if name == "expected" else "hit", **changed)
    assert CacheCase.objects.count() == 1 + len(cases.DEFINING)


def test_cases_go_with_the_answer_and_the_asker_they_name(stored):
    stored.generation = "00000000-0000-0000-0000-000000000007"
    stored.save()
    stored.refresh_from_db()
    case_of(SAME, "hit", generation=stored.generation)
    case_of(OPPOSITE | {"owner": ""}, "miss")
    service.forget_person("user:2", "2")
    assert CacheCase.objects.count() == 2
    service.forget([stored.generation])
    assert [case.owner for case in CacheCase.objects.all()] == [""]
    case_of(SAME, "hit")
    service.forget_person("user:1", "1")
    assert [case.owner for case in CacheCase.objects.all()] == [""]
    assert CacheEntry.objects.count() == 0


def test_the_same_decision_as_on_the_page(stored):
    for asked in (SAME, ALIKE, OPPOSITE):
        case = run(case_of(asked, "miss"))
        decision = decision_on(asked["text"], asked["tenant"], asked["owner"])
        assert decision is not None
        assert (case.got_outcome, case.got_reason) == (decision.outcome, decision.reason)
