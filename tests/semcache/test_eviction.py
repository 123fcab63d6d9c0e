"""Entries leave past their time and past capacities, least recently used first; running twice changes nothing."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.utils import timezone

from semcache import eviction, tasks
from semcache.models import CacheEntry, CacheEntryUse, CacheRule
from tests.semcache import factories
from tests.semcache.test_store import scope

pytestmark = pytest.mark.django_db


def rows(rule: CacheRule, count: int, **changes) -> list[CacheEntry]:
    """`count` entries, each a minute younger than the one before."""
    start = timezone.now() - timedelta(hours=2)
    name = changes.pop("name", "row")
    return [
        factories.row(
            scope(name),
            scope(f"{name}{number}"),
            rule,
            created_at=start + timedelta(minutes=number),
            **changes,
        )
        for number in range(count)
    ]


def use(entry: CacheEntry) -> None:
    CacheEntryUse.objects.create(entry=entry, last_used_at=timezone.now(), hits=1)


def left() -> set[int]:
    return set(CacheEntry.objects.values_list("pk", flat=True))


def test_expired_rows_go_and_living_ones_stay():
    rule = factories.rule(ttl_s=86_400)
    living = rows(rule, 3, name="living")
    hour_ago = timezone.now() - timedelta(hours=1)
    rows(rule, 3, name="dead", expires_at=hour_ago)
    factories.row(scope("x"), scope("x"), rule, created_at=timezone.now() + timedelta(days=1))
    assert tasks.expire_entries() == 4
    assert left() == {entry.pk for entry in living}
    assert tasks.expire_entries() == 0


def test_more_than_one_batch_goes_in_one_run(monkeypatch):
    rule = factories.rule()
    rows(rule, 7, expires_at=timezone.now() - timedelta(hours=1))
    monkeypatch.setattr(eviction, "delete_expired", partial(eviction.delete_expired, batch=3))
    assert tasks.expire_entries() == 7


def test_the_least_recently_used_leave_a_full_rule():
    rule = factories.rule(capacity=3, ttl_s=86_400)
    entries = rows(rule, 6)
    use(entries[0])
    other = rows(factories.rule(capacity=3, ttl_s=86_400), 3, name="other")
    assert tasks.enforce_capacity() == 3
    assert left() == {entry.pk for entry in (entries[0], entries[4], entries[5], *other)}
    assert tasks.enforce_capacity() == 0


def test_pinned_rows_stay_and_use_the_capacity():
    rule = factories.rule(capacity=2, ttl_s=86_400)
    pinned = rows(rule, 1, name="pinned", is_pinned=True)
    others = rows(rule, 4, name="others")
    assert tasks.enforce_capacity() == 3
    assert left() == {pinned[0].pk, others[3].pk}
    CacheEntry.objects.update(is_pinned=True)
    CacheRule.objects.update(capacity=1)
    assert tasks.enforce_capacity() == 0


def test_an_owner_keeps_no_more_private_rows_than_allowed(settings):
    settings.SEMCACHE_MAX_PER_OWNER = 2
    rule = factories.rule(ttl_s=86_400)
    mine = rows(rule, 4, name="mine", owner="user:1")
    theirs = rows(rule, 2, name="theirs", owner="user:2")
    shared = rows(rule, 4, name="shared", owner="user:1", sharing="public")
    assert tasks.enforce_capacity() == 2
    assert left() == {entry.pk for entry in (*mine[2:], *theirs, *shared)}


def test_the_whole_table_keeps_no_more_rows_than_allowed(settings):
    settings.SEMCACHE_MAX_ENTRIES = 4
    first = rows(factories.rule(ttl_s=86_400), 3, name="first")
    second = rows(factories.rule(ttl_s=86_400), 3, name="second")
    use(first[1])
    assert tasks.enforce_capacity() == 2
    assert left() == {entry.pk for entry in (first[1], first[2], second[1], second[2])}


def test_the_use_of_an_entry_goes_with_it_however_it_is_deleted():
    entry = rows(factories.rule(), 1)[0]
    use(entry)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM semcache_cacheentry")
    assert CacheEntryUse.objects.count() == 0


@pytest.mark.parametrize("task", [tasks.expire_entries, tasks.enforce_capacity])
def test_the_same_clean_up_delivered_three_times_at_once_has_one_effect(committed, task):
    rule = factories.rule(capacity=20, ttl_s=86_400)
    rows(rule, 30, name="living")
    if task is tasks.expire_entries:
        rows(rule, 40, name="dead", expires_at=timezone.now() - timedelta(hours=1))
        expected = 30
    else:
        rows(rule, 40, name="more")
        expected = 20
    start, deleted, failures = threading.Barrier(3), [], []

    def run() -> None:
        start.wait()
        try:
            deleted.append(task())
        except Exception as problem:  # shown by the assertion below
            failures.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    task()
    assert failures == []
    assert CacheEntry.objects.count() == expected
    assert sum(deleted) <= 70 - expected


def test_the_schedule_names_tasks_that_exist_and_drops_late_runs():
    names = {tasks.expire_entries.name, tasks.enforce_capacity.name}
    assert {entry["task"] for entry in tasks.BEAT_SCHEDULE.values()} == names
    for entry in tasks.BEAT_SCHEDULE.values():
        assert entry["options"]["expires"] < entry["schedule"]
