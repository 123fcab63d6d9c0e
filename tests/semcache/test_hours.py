"""What rules did hour by hour: everything is counted once, in few writes, and months become days."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from datetime import UTC, datetime, timedelta

import pytest
from django.db import Error, connection
from django.utils import timezone

from semcache import service
from semcache.decision import Decision, Hit, Outcome, Reason
from semcache.models import CacheEntry, CacheLook, CacheRule, CacheRuleHour
from semcache.quality import hours
from semcache.quality.hours import HourCounter, Tally, last_hours, last_hours_of, roll_up, tally_of
from semcache.rules.rulebook import as_value
from semcache.storage.threads import in_database
from tests.semcache import factories
from tests.semcache.factories import all_alike, ask

ONE, SAME, OTHER = (
    "Which plans include backup?",
    "Which of the plans include a backup?",
    "Who founded the company?",
)


@pytest.fixture(autouse=True)
def only_rule(committed) -> CacheRule:
    return factories.rule(sharing="public")


def hit(**values) -> Hit:
    given = {
        "entry_id": 1, "question": "q", "answer": "a", "token_ids": (), "tokenizer": "", "num_tokens": 40,
        "created_at": timezone.now(), "age_s": 1, "similarity": 1.0, "took_ms": 2000.0,
    }  # fmt: skip
    return Hit(**(given | values))


def decision(rule: CacheRule, outcome: Outcome = Outcome.MISS, found: Hit | None = None) -> Decision:
    return Decision(
        outcome, Reason.EXACT, hit=found, rule=as_value(rule), steps=(("rule", 1.0), ("exact", 4.0))
    )


def total(rule: CacheRule) -> Tally:
    tally = Tally()
    for row in CacheRuleHour.objects.filter(rule=rule):
        tally.add(Tally(*(getattr(row, name) for name in hours.COLUMNS)))
    return tally


def put(rule: CacheRule, hour: datetime, **values) -> None:
    CacheRuleHour.objects.create(rule=rule, hour=hour, **values)


async def test_look_ups_are_counted_with_what_their_hits_saved(only_rule):
    await factories.store(ONE, "In settings.", all_alike)
    await CacheEntry.objects.aupdate(num_tokens=40, took_ms=60_000.0)
    await ask(ONE, all_alike)
    await ask(SAME, all_alike)
    await ask(OTHER, all_alike)
    await service.flush_hits()
    found = await in_database(total, only_rule)
    assert (found.looks, found.exact_hits, found.semantic_hits, found.stale_hits) == (4, 1, 1, 0)
    assert found.tokens_saved == 80 and 0 < found.ms_saved < 120_000


async def test_what_is_no_look_up_is_not_counted(only_rule):
    await factories.store(ONE, "In settings.")
    await ask(ONE, may_read=False)
    await CacheRule.objects.aupdate(mode="off")
    service.forget_rules()
    await ask(ONE)
    await service.flush_hits()
    assert astuple(await in_database(total, only_rule)) == (1, 0, 0, 0, 0, 0.0)


async def test_a_temporary_chat_is_counted_and_leaves_nothing_else(only_rule):
    await ask(ONE, may_store=False)
    await service.flush_hits()
    assert (await in_database(total, only_rule)).looks == 1
    assert await CacheLook.objects.acount() == 0


async def test_a_shadow_rule_looks_and_saves_nothing(only_rule):
    await factories.store(ONE, "In settings.")
    await CacheRule.objects.aupdate(mode="shadow")
    service.forget_rules()
    await ask(ONE)
    await service.flush_hits()
    assert astuple(await in_database(total, only_rule)) == (2, 0, 0, 0, 0, 0.0)


def test_a_hit_saves_the_time_of_its_answer_less_that_of_the_look_up(only_rule):
    found = tally_of(decision(only_rule, Outcome.HIT_EXACT, hit(is_stale=True)))
    assert astuple(found) == (1, 1, 0, 1, 40, 1995.0)
    assert tally_of(decision(only_rule, Outcome.HIT_SEMANTIC, hit(took_ms=0.0))).ms_saved == 0, (
        "nothing is known of it"
    )


def test_a_flush_is_one_statement_for_all_rules_and_hits(only_rule, django_assert_num_queries):
    counter, other = HourCounter(), factories.rule()
    for _ in range(100):
        counter.add(decision(only_rule, Outcome.HIT_EXACT, hit()))
        counter.add(decision(other))
    with django_assert_num_queries(1):
        assert counter.flush() == 2
    assert (total(only_rule).hits, total(other).looks, CacheRuleHour.objects.count()) == (100, 100, 2)
    with django_assert_num_queries(0):
        assert counter.flush() == 0


def test_counts_wait_while_the_database_is_away(only_rule, monkeypatch):
    counter = HourCounter()
    counter.add(decision(only_rule))
    with monkeypatch.context() as away:
        away.setattr(hours, "_ADD", "SELECT nonsense")
        with pytest.raises(Error):
            counter.flush()
        counter.add(decision(only_rule))
    assert counter.flush() == 1
    assert total(only_rule).looks == 2


def test_a_rule_that_is_gone_stops_nobody_elses_counts(only_rule):
    counter, gone = HourCounter(), factories.rule()
    counter.add(decision(gone))
    counter.add(decision(only_rule))
    gone.delete()
    counter.flush()
    assert [row.rule_id for row in CacheRuleHour.objects.all()] == [only_rule.pk]


def test_processes_that_write_at_once_lose_nothing(only_rule):
    rules = [only_rule, factories.rule(), factories.rule()]

    def write(order: list[CacheRule]) -> None:
        try:
            for _ in range(20):
                counter = HourCounter()
                for rule in order:
                    counter.add(decision(rule))
                counter.flush()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as workers:
        list(workers.map(write, [rules, rules[::-1]]))
    assert [total(rule).looks for rule in rules] == [40, 40, 40]


def old_days(rule: CacheRule) -> datetime:
    """A day's first hour, 40 days ago, with three of its hours in the table; and the hours of yesterday."""
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=40)
    for hour in (0, 5, 23):
        put(rule, day + timedelta(hours=hour), looks=10, exact_hits=2, ms_saved=1.5)
    put(rule, day + timedelta(days=1, hours=7), looks=1)
    put(rule, day + timedelta(days=39, hours=7), looks=100)
    return day


def kept(rule: CacheRule) -> list[tuple[datetime, int, int, float]]:
    rows = CacheRuleHour.objects.filter(rule=rule).order_by("hour")
    return list(rows.values_list("hour", "looks", "exact_hits", "ms_saved"))


def test_hours_older_than_a_month_become_days_once(only_rule):
    day = old_days(only_rule)
    expected = [
        (day, 30, 6, 4.5),
        (day + timedelta(days=1), 1, 0, 0.0),
        (day + timedelta(days=39, hours=7), 100, 0, 0.0),
    ]
    for _ in range(2):
        roll_up()
        assert kept(only_rule) == expected


def test_two_workers_that_roll_up_at_once_count_nothing_twice(only_rule):
    day = old_days(only_rule)

    def run(number: int) -> None:
        try:
            roll_up()
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as workers:
        list(workers.map(run, range(3)))
    assert kept(only_rule)[0] == (day, 30, 6, 4.5)


def test_a_roll_up_that_is_killed_has_done_nothing(only_rule, monkeypatch):
    old_days(only_rule)
    before = kept(only_rule)
    with monkeypatch.context() as killed:
        killed.setattr(
            hours, "_ROLL_UP", hours._ROLL_UP.replace("GROUP BY rule_id, day", "GROUP BY rule_id, day, 1 / 0")
        )
        with pytest.raises(Error):
            roll_up()
    assert kept(only_rule) == before


def test_a_hit_that_comes_late_into_a_day_is_added_to_it(only_rule):
    day = old_days(only_rule)
    roll_up()
    put(only_rule, day + timedelta(hours=9), looks=5)
    roll_up()
    assert kept(only_rule)[0] == (day, 35, 6, 4.5)


def test_what_is_older_than_400_days_goes(only_rule):
    put(only_rule, datetime.now(UTC) - timedelta(days=401), looks=1)
    put(only_rule, datetime.now(UTC) - timedelta(days=399), looks=2)
    roll_up()
    assert [looks for _, looks, *_ in kept(only_rule)] == [2]


def test_the_last_hours_have_no_gaps(only_rule):
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    put(only_rule, now - timedelta(hours=2), looks=3, exact_hits=1)
    put(only_rule, now - timedelta(hours=9), looks=9)
    found = last_hours(only_rule.pk, 4)
    assert [(tally.looks, tally.hits) for _, tally in found] == [(0, 0), (3, 1), (0, 0), (0, 0)]


def test_the_hours_of_several_rules_are_told_apart(only_rule):
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    another = factories.rule(name="another")
    put(only_rule, now, looks=3)
    put(another, now, looks=5)
    found = last_hours_of([another.pk, only_rule.pk], 2)
    assert {rule: [tally.looks for _, tally in hours] for rule, hours in found.items()} == {
        only_rule.pk: [0, 3],
        another.pk: [0, 5],
    }
