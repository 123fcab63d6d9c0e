"""Clean-up by several workers at once, twice, or killed in the middle: nothing waits in a circle or goes twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from semcache import tasks
from semcache.models import CacheEntry, CacheEntryUse
from semcache.storage import eviction, store
from semcache.storage.usage import HitCounter
from tests.semcache import factories
from tests.semcache.test_eviction import fill, rows, use

# Other workers see only what is committed, so none of these runs in a transaction of its own.
pytestmark = pytest.mark.usefixtures("committed")


def at_once(*jobs: Callable[[], Any]) -> list[Any]:
    """What workers that start together return; their errors are the test's."""
    start, deleted, failures = threading.Barrier(len(jobs)), [], []

    def run(job: Callable[[], Any]) -> None:
        start.wait()
        try:
            deleted.append(job())
        except Exception as problem:  # shown by the assertion below
            failures.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    return deleted


@pytest.mark.parametrize("task", [tasks.expire_entries, tasks.enforce_capacity])
def test_the_same_clean_up_delivered_three_times_at_once_has_one_effect(task):
    """CE-01."""
    rule = factories.rule(capacity=20, ttl_s=86_400)
    rows(rule, 30, name="living")
    if task is tasks.expire_entries:
        rows(rule, 40, name="dead", expires_at=timezone.now() - timedelta(hours=1))
        expected = 30
    else:
        rows(rule, 40, name="more")
        expected = 20
    deleted = at_once(task, task, task)
    deleted.append(task())
    assert CacheEntry.objects.count() == expected
    assert sum(deleted) == 70 - expected


def test_a_row_in_somebodys_hand_holds_up_no_clean_up_and_goes_with_the_next():
    rule = factories.rule(ttl_s=86_400)
    rows(rule, 3, name="dead", expires_at=timezone.now() - timedelta(hours=1))
    with transaction.atomic():
        held = CacheEntry.objects.select_for_update().order_by("id").first()
        assert at_once(tasks.expire_entries) == [2]
    assert list(CacheEntry.objects.all()) == [held]
    assert tasks.expire_entries() == 1


def test_while_one_worker_counts_what_is_too_many_another_one_deletes_nothing():
    rule = factories.rule(capacity=20, ttl_s=86_400)
    rows(rule, 30)
    with transaction.atomic():
        # The first worker, stopped in the middle: it has deleted and not yet committed.
        assert eviction.delete_surplus(eviction.of_rule(rule.pk), 20, 1000) == 10
        assert at_once(lambda: eviction.delete_surplus(eviction.of_rule(rule.pk), 20, 1000)) == [0]
        transaction.set_rollback(True)  # and then killed
    assert CacheEntry.objects.count() == 30
    assert tasks.enforce_capacity() == 10


def test_what_a_killed_worker_did_not_commit_the_next_run_does():
    rows(factories.rule(), 10, expires_at=timezone.now() - timedelta(hours=1))
    with transaction.atomic():
        assert eviction.delete_expired(batch=4) == 4
        assert at_once(tasks.expire_entries) == [6]
        transaction.set_rollback(True)
    assert tasks.expire_entries() == 4


def test_hits_written_during_a_clean_up_never_close_a_circle_of_waiting():
    """A flush that waited for an entry while it held the use of another would wait for the deleter and it for it."""
    entries = rows(factories.rule(), 2)
    use(entries[0])
    counter = HitCounter()
    for entry in entries:
        counter.add(entry.pk)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT id FROM semcache_cacheentry ORDER BY id FOR UPDATE")  # a deleter's first half
        assert at_once(counter.flush) == [2]
        cursor.execute("DELETE FROM semcache_cacheentry")
    assert CacheEntryUse.objects.count() == 0


def test_clean_up_capacity_hits_and_evictions_at_once_never_fail():
    rule = factories.rule(capacity=50, ttl_s=86_400)
    fill(rule, 300)
    fill(rule, 300, name="dead", age_s=90_000)
    ids = list(CacheEntry.objects.values_list("pk", flat=True))

    def hits() -> int:
        counter = HitCounter()
        for pk in ids:
            counter.add(pk)
        return counter.flush()

    jobs = (tasks.expire_entries, tasks.enforce_capacity, hits, lambda: store.delete(ids[::-7]))
    at_once(*jobs, *jobs)
    tasks.enforce_capacity()
    assert CacheEntry.objects.count() <= 50
