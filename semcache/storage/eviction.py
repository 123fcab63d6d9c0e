"""How entries leave: past their time, or the least recently used past a capacity.

Synchronous, for workers. Every call does one batch and says how many rows went, so that no transaction is long.
Doing it twice, or three times at once, has the effect of doing it once: what is too many is counted again for every
batch, by one worker at a time. Rows that somebody else holds are left for the next run, so nobody waits in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

BATCH = 500
# The oldest fifth of a sample is old enough, and reading it costs the same in a table of any size. What is no larger
# than the sample is ranked as a whole.
SAMPLE = 5 * BATCH
# Any number that nobody else uses as an advisory lock in this database.
CAPACITY_LOCK = 0x5E3C_AC4E

# Rows from the future (a wrong clock, a bad import) are never served, so they go like expired ones. What its rule still
# serves past its end waits until that is over, too.
EXPIRED = """
DELETE FROM semcache_cacheentry
 WHERE id IN (SELECT e.id FROM semcache_cacheentry e JOIN semcache_cacherule r ON r.id = e.rule_id
               WHERE e.created_at > statement_timestamp()
                  OR (e.expires_at <= statement_timestamp()
                      AND e.expires_at + CASE WHEN e.may_be_stale AND r.is_enabled AND r.mode IN ('exact', 'semantic')
                                              THEN r.stale_s ELSE 0 END * interval '1 second'
                          <= statement_timestamp())
               ORDER BY e.id LIMIT %(batch)s
                 FOR UPDATE OF e SKIP LOCKED)"""

COUNT = "SELECT count(*) FROM semcache_cacheentry WHERE {group}"
# What nobody owns was brought in or promoted for everybody.
GREEDIEST = """
SELECT tenant, owner, count(*) FROM semcache_cacheentry WHERE NOT is_pinned AND owner <> '' AND {group}
 GROUP BY tenant, owner HAVING count(*) > %(share)s ORDER BY count(*) DESC, tenant, owner LIMIT 1"""
# Pinned rows use their group's capacity and never leave for it.
LEAST_RECENTLY_USED = """
DELETE FROM semcache_cacheentry
 WHERE id IN (
       SELECT id FROM semcache_cacheentry
        WHERE id IN (
              SELECT sample.id
                FROM (SELECT id, created_at FROM semcache_cacheentry TABLESAMPLE SYSTEM (%(percent)s)
                       WHERE NOT is_pinned AND {group}) sample
                     LEFT JOIN semcache_cacheentryuse used ON used.entry_id = sample.id
               ORDER BY greatest(used.last_used_at, sample.created_at), sample.id LIMIT %(num_rows)s)
        ORDER BY id FOR UPDATE SKIP LOCKED)"""

FULL_RULES = """
SELECT r.id, r.capacity FROM semcache_cacherule r JOIN semcache_cacheentry e ON e.rule_id = r.id
 GROUP BY r.id HAVING count(*) > r.capacity ORDER BY r.id"""
FULL_OWNERS = """
SELECT tenant, owner FROM semcache_cacheentry WHERE sharing = 'private'
 GROUP BY tenant, owner HAVING count(*) > %(capacity)s ORDER BY tenant, owner"""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share a capacity: a condition in SQL and its values."""

    condition: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def of_owner(self, tenant: str, owner: str) -> Group:
        condition = f"{self.condition} AND tenant = %(tenant)s AND owner = %(owner)s"
        return Group(condition, {**self.values, "tenant": tenant, "owner": owner})


EVERYTHING = Group("true")
PRIVATE = Group("sharing = 'private'")


def of_rule(rule_id: int) -> Group:
    return Group("rule_id = %(rule_id)s", {"rule_id": rule_id})


def delete_expired(batch: int = BATCH) -> int:
    """Delete up to `batch` rows that no look-up would serve any more; rows in another worker's hand stay."""
    with connection.cursor() as cursor:
        cursor.execute(EXPIRED, {"batch": batch})
        return int(cursor.rowcount)


def full_rules() -> list[tuple[int, int]]:
    """(rule id, capacity) of the rules with more entries than they may have."""
    return _rows(FULL_RULES, {})


def full_owners(capacity: int) -> list[tuple[str, str]]:
    """(tenant, owner) with more private entries than `capacity`."""
    return _rows(FULL_OWNERS, {"capacity": capacity})


def delete_surplus(group: Group, capacity: int, share: int, batch: int = BATCH) -> int:
    """Delete up to `batch` of the rows past `capacity`, least recently used first; 0 while another worker does it.

    Who owns more than `share` of a full group pays alone until they are down to it: nobody fills it at the
    expense of the others.
    """
    with transaction.atomic():
        if not _is_first():
            return 0
        num_rows = _count(group)
        surplus = min(batch, num_rows - capacity)
        if surplus <= 0:
            return 0
        greediest = _rows(GREEDIEST.format(group=group.condition), {**group.values, "share": share})
        if not greediest:
            return _delete_least_recently_used(group, num_rows, surplus)
        ((tenant, owner, num_owned),) = greediest
        return _delete_least_recently_used(
            group.of_owner(tenant, owner), num_owned, min(surplus, num_owned - share)
        )


def _delete_least_recently_used(group: Group, size: int, num_rows: int) -> int:
    # A share of the table's pages; the group's rows lie anywhere in them.
    percent = min(100.0, 100.0 * SAMPLE / size)
    with connection.cursor() as cursor:
        sql = LEAST_RECENTLY_USED.format(group=group.condition)
        cursor.execute(sql, {**group.values, "percent": percent, "num_rows": num_rows})
        return int(cursor.rowcount)


def _is_first() -> bool:
    """Two workers that counted at once would both delete the difference."""
    ((is_first,),) = _rows("SELECT pg_try_advisory_xact_lock(%(lock)s)", {"lock": CAPACITY_LOCK})
    return bool(is_first)


def _count(group: Group) -> int:
    ((count,),) = _rows(COUNT.format(group=group.condition), group.values)
    return int(count)


def _rows(sql: str, values: Mapping[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
