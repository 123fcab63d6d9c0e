"""A stored answer beside the model's: made by a worker, once, counted and stored nowhere, and soon forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from semcache import process, service, tasks
from semcache.decision import Answer
from semcache.lending import Asked, NotMade, WhyNot
from semcache.models import CacheComparison, CacheEntry, CacheLook
from semcache.quality import comparisons
from semcache.quality.comparisons import NoSuchAnswer, StillMaking, Wanted
from tests.semcache import factories
from tests.semcache import model as lent_model
from tests.semcache.lender import as_asked
from tests.semcache.model import NOW, Model
from tests.semcache.test_admin_try import lent

pytestmark = pytest.mark.django_db
__all__ = ["lent"]

State = CacheComparison.State
WANTED = Wanted("When do you open?", "default", "user:1", "small")


@pytest.fixture
def entry() -> CacheEntry:
    factories.rule(name="Everything", sharing="public", ttl_s=86_400)
    entry_id = async_to_sync(factories.store)("When do you open?", "At nine.", factories.all_alike)
    CacheEntry.objects.filter(pk=entry_id).update(generation=uuid4())
    return CacheEntry.objects.get(pk=entry_id)


@pytest.fixture(autouse=True)
def model(settings, monkeypatch) -> Model:
    settings.SEMCACHE_ANSWERED_BY = "tests.semcache.model.answered"
    settings.SEMCACHE_RUN_BY = ""
    fresh = Model()
    monkeypatch.setattr(lent_model, "model", fresh)
    return fresh


def made(entry: CacheEntry, author: str = "1") -> CacheComparison:
    begun = comparisons.begin(WANTED, entry.pk, author)
    tasks.make_comparisons()
    begun.refresh_from_db()
    return begun


def test_the_model_is_asked_the_same_question_of_the_same_business_line_and_model(entry, model):
    row = made(entry)
    assert model.asked == [("When do you open?", "default", "small")]
    assert (row.state, row.made, row.is_whole, row.trouble) == (State.DONE, NOW.text, True, "")
    assert (row.stored_question, row.stored_answer) == (entry.question, "At nine.")
    assert row.took_ms == 1234.0 and row.started_at and row.ended_at
    assert row.generation == entry.generation


def test_whether_it_is_the_same_is_said_by_the_check_of_the_budget(entry, model):
    model.says = Answer("Bananas grow in Ecuador.", is_complete=True)
    assert made(entry).is_same is False
    model.says = Answer("At nine!", is_complete=True)
    assert made(entry).is_same is True


async def doubting(pairs: list[tuple[str, str]]) -> list[float]:
    return [0.125 for _ in pairs]


async def with_a_verifier(text: str, tenant: str, owner: str, model: str) -> Asked | None:
    asked = await as_asked(text, tenant, owner, model)
    return asked and replace(asked, verify=doubting)


def test_the_lent_verifier_is_asked(entry, settings):
    settings.SEMCACHE_ASKED_BY = f"{__name__}.with_a_verifier"
    row = made(entry)
    assert (row.is_same, row.score) == (False, 0.125)


def test_nothing_is_stored_or_counted(entry):
    before = list(CacheEntry.objects.values())
    made(entry)
    assert list(CacheEntry.objects.values()) == before
    assert process.hits.flush() == 0 and CacheLook.objects.count() == 0


@pytest.mark.parametrize("why", list(WhyNot))
def test_without_an_answer_the_reason_is_kept(entry, model, why):
    model.says = NotMade(why)
    row = made(entry)
    assert (row.state, row.trouble, row.is_same, row.made) == (State.FAILED, why.value, None, "")


@pytest.mark.parametrize(
    ("says", "trouble"),
    [
        (ConnectionError("gone"), "away"),
        (ValueError("a bug"), "failed"),
        (Answer(" \n", is_complete=True), "empty"),
    ],
)
def test_trouble_of_any_kind_ends_it(entry, model, says, trouble):
    model.says = says
    row = made(entry)
    assert (row.state, row.trouble, row.is_same) == (State.FAILED, trouble, None)


def test_without_anybody_to_ask_it_fails(entry, settings):
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    assert made(entry).trouble == "away"


def test_one_that_never_ends_is_given_up(entry, monkeypatch):
    async def hanging(*_: Any) -> Answer:
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr(comparisons, "MADE_WITHIN_S", 0.05)
    monkeypatch.setattr(lent_model, "answered", hanging)
    assert made(entry).trouble == "too-late"


@pytest.mark.parametrize(
    "says", [Answer("Half of", is_complete=False), Answer("x" * 200_001, is_complete=True)]
)
def test_half_an_answer_is_shown_and_not_compared(entry, model, says):
    model.says = says
    row = made(entry)
    assert (row.state, row.trouble, row.is_same, row.is_whole) == (State.DONE, "cut-off", None, False)
    assert row.made == says.text[:200_000]


def test_one_that_is_delivered_twice_is_made_once(entry, model):
    made(entry)
    tasks.make_comparisons()
    assert len(model.asked) == 1


def test_of_two_workers_one_makes_it(entry, model, monkeypatch):
    """The second reads the row before the first has taken it."""
    begun = comparisons.begin(WANTED, entry.pk, "1")
    CacheComparison.objects.filter(pk=begun.pk).update(state=State.RUNNING)
    begun.state = State.WAITING

    class Stale:
        def order_by(self, _: str) -> Stale:
            return self

        def first(self) -> CacheComparison:
            return begun

    real = CacheComparison.objects.filter
    monkeypatch.setattr(
        CacheComparison.objects,
        "filter",
        lambda **which: real(**which) if "pk" in which else Stale(),
    )
    comparisons.make_next()
    assert model.asked == []


def test_a_person_has_one_at_a_time(entry):
    comparisons.begin(WANTED, entry.pk, "1")
    with pytest.raises(StillMaking):
        comparisons.begin(WANTED, entry.pk, "1")
    comparisons.begin(WANTED, entry.pk, "2")
    tasks.make_comparisons()
    comparisons.begin(WANTED, entry.pk, "1")
    assert CacheComparison.objects.count() == 3


def test_the_database_holds_a_person_to_one_at_a_time(entry):
    comparisons.begin(WANTED, entry.pk, "1")
    with pytest.raises(IntegrityError, match="one_open_comparison_per_author"):
        CacheComparison.objects.create(author="1", entry=1, state=State.RUNNING, created_at=timezone.now())


def test_an_answer_that_is_gone_is_not_compared(entry):
    CacheEntry.objects.all().delete()
    with pytest.raises(NoSuchAnswer):
        comparisons.begin(WANTED, entry.pk, "1")


def test_what_no_worker_takes_or_ends_is_given_up(entry, model):
    waiting = comparisons.begin(WANTED, entry.pk, "1")
    running = comparisons.begin(WANTED, entry.pk, "2")
    now = timezone.now()
    young = now - comparisons.ENDED_WITHIN + timedelta(minutes=1)
    CacheComparison.objects.filter(pk=running.pk).update(state=State.RUNNING, started_at=young)
    assert comparisons.give_up() == 0
    old = now - comparisons.TAKEN_WITHIN - timedelta(seconds=1)
    CacheComparison.objects.filter(pk=waiting.pk).update(created_at=old)
    CacheComparison.objects.filter(pk=running.pk).update(started_at=old)
    tasks.make_comparisons()
    for row, trouble in ((waiting, "not-taken"), (running, "died")):
        row.refresh_from_db()
        assert (row.state, row.trouble) == (State.FAILED, trouble) and row.ended_at
    assert model.asked == []
    comparisons.begin(WANTED, entry.pk, "2")


def test_where_no_worker_runs_staff_may_try_again_later(entry):
    first = comparisons.begin(WANTED, entry.pk, "1")
    old = timezone.now() - comparisons.TAKEN_WITHIN - timedelta(seconds=1)
    CacheComparison.objects.filter(pk=first.pk).update(created_at=old)
    comparisons.begin(WANTED, entry.pk, "1")
    first.refresh_from_db()
    assert first.trouble == "not-taken"


def test_whoever_erases_the_answer_meanwhile_waits_for_its_copy(entry):
    with CaptureQueriesContext(connection) as asked:
        comparisons.begin(WANTED, entry.pk, "1")
    (found,) = (
        query["sql"] for query in asked if query["sql"].startswith("SELECT") and "cacheentry" in query["sql"]
    )
    assert found.endswith("FOR UPDATE")


def test_one_that_was_given_up_stays_so(entry):
    begun = comparisons.begin(WANTED, entry.pk, "1")
    CacheComparison.objects.filter(pk=begun.pk).update(state=State.FAILED, trouble="died")
    comparisons._end(begun.pk, comparisons.Result(made="late"))
    begun.refresh_from_db()
    assert (begun.state, begun.made) == (State.FAILED, "")


def test_a_day_later_it_is_gone(entry):
    young, old = made(entry), made(entry)
    day = timedelta(days=1)
    CacheComparison.objects.filter(pk=old.pk).update(created_at=timezone.now() - day)
    CacheComparison.objects.filter(pk=young.pk).update(created_at=timezone.now() - day + timedelta(minutes=5))
    tasks.make_comparisons()
    assert [row.pk for row in CacheComparison.objects.all()] == [young.pk]


def test_it_goes_with_the_answer_that_it_shows_and_with_its_people(entry):
    def left(author: str = "1") -> bool:
        return CacheComparison.objects.filter(pk=made(entry, author).pk).exists()

    assert left()
    service.forget([UUID(int=1)])
    service.forget_person("user:2", "2")
    assert CacheComparison.objects.count() == 1
    service.forget([entry.generation])
    assert CacheComparison.objects.count() == 0


@pytest.mark.parametrize("of", [("user:1", "x"), ("x", "1")])
def test_it_goes_with_the_person_it_was_tried_as_or_who_began_it(entry, of):
    made(entry)
    service.forget_person(*of)
    assert CacheComparison.objects.count() == 0


def test_the_nearest_is_what_is_served_else_what_was_looked_at_first(entry):
    other = async_to_sync(factories.store)("Which plans include backup?", "Both.", factories.all_alike)
    for text, found in (
        ("when do you open?", entry.pk),
        ("Which of the plans include backup?", other),
        ("Which plans do not include backup?", other),
    ):
        decision = async_to_sync(factories.ask)(text, factories.all_alike)
        assert comparisons.nearest(decision) == found, decision.reason
    nothing = async_to_sync(factories.ask)("Is there tea?", factories.all_alike, model_revision="x")
    for decision in (None, nothing):
        with pytest.raises(NoSuchAnswer):
            comparisons.nearest(decision)
