"""Entries leave past their time and past capacities, least recently used first; running twice changes nothing."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.utils import timezone

from semcache import tasks
from semcache.models import CacheEntry, CacheEntryUse, CacheRule
from semcache.storage import eviction
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


FILL = """
INSERT INTO semcache_cacheentry (scope, prompt_sha256, question, answer, rule_id, sharing, tenant, owner,
       model_revision, embedder, token_ids, tokenizer, num_tokens, is_pinned, created_at, expires_at)
SELECT %(scope)s, encode(sha256((%(scope)s || n)::bytea), 'hex'), 'q', 'a', %(rule)s, %(sharing)s, 'default', 'user:1',
       'r', '', '{}', '', 0, false, now() - %(age_s)s * interval '1 second',
       now() + (86400 - %(age_s)s) * interval '1 second'
  FROM generate_series(1, %(count)s) n"""


def fill(rule: CacheRule, count: int, name: str = "many", age_s: int = 0) -> None:
    """Many entries of one owner at once, each with a life of a day."""
    values = {"scope": scope(name), "rule": rule.pk, "sharing": rule.sharing, "age_s": age_s, "count": count}
    with connection.cursor() as cursor:
        cursor.execute(FILL, values)


@pytest.mark.parametrize("sharing", ["private", "public"])
def test_ten_thousand_entries_of_one_owner_cost_nobody_else_an_entry(settings, sharing):
    settings.SEMCACHE_MAX_PER_OWNER = 300
    settings.SEMCACHE_MAX_ENTRIES = 900
    rule = factories.rule(capacity=600, sharing=sharing, ttl_s=86_400)
    others = [
        entry for user in range(2, 12) for entry in rows(rule, 20, name=f"user:{user}", owner=f"user:{user}")
    ]
    fill(rule, 10_000)
    tasks.enforce_capacity()
    assert {entry.pk for entry in others} <= left()
    assert CacheEntry.objects.filter(owner="user:1").count() == (300 if sharing == "private" else 400)


def test_what_was_brought_in_for_everybody_pays_no_more_than_its_share(settings):
    """A mutant that takes everybody for one owner would delete imported answers first, however often they are used."""
    settings.SEMCACHE_MAX_PER_OWNER = 10
    rule = factories.rule(sharing="public", ttl_s=86_400, capacity=45)
    imported = rows(rule, 40, name="imported", owner="", tenant="", source="import")
    for entry in imported:
        use(entry)
    somebodys = rows(rule, 8, name="somebodys")
    tasks.enforce_capacity()
    assert left() >= {entry.pk for entry in imported}
    assert len(left() & {entry.pk for entry in somebodys}) == 5


def test_in_a_table_larger_than_the_sample_no_recently_used_row_goes(settings, monkeypatch):
    settings.SEMCACHE_MAX_ENTRIES, settings.SEMCACHE_MAX_PER_OWNER = 3900, 100_000
    monkeypatch.setattr(eviction, "SAMPLE", 1000)
    rule = factories.rule(ttl_s=86_400, capacity=100_000)
    fill(rule, 4000)
    used = list(CacheEntry.objects.order_by("?")[:400])
    CacheEntryUse.objects.bulk_create(
        CacheEntryUse(entry=entry, last_used_at=timezone.now() + timedelta(minutes=1)) for entry in used
    )
    deleted = tasks.enforce_capacity()
    assert deleted == 100
    assert {entry.pk for entry in used} <= left()


def test_a_run_ends_in_time_and_leaves_the_rest_to_the_next(monkeypatch):
    rows(factories.rule(), 7, expires_at=timezone.now() - timedelta(hours=1))
    monkeypatch.setattr(eviction, "delete_expired", partial(eviction.delete_expired, batch=3))
    ticks = iter((0.0, 1.0, 2.0, tasks.RUN_S))
    with monkeypatch.context() as patch:
        patch.setattr(tasks.time, "monotonic", lambda: next(ticks))
        assert tasks.expire_entries() == 6
    assert tasks.expire_entries() == 1
