"""How entries leave: past their time, or the least recently used past a capacity.

Synchronous, for workers. Every call does one batch and says how many rows went, so that no transaction is long.
Doing it twice, or three times at once, has the effect of doing it once: which rows go follows from what is there,
never from a count made earlier.
"""

from __future__ import annotations

from typing import Any

from django.db import connection

BATCH = 500

# Rows from the future (a wrong clock, a bad import) are never served, so they go like expired ones.
EXPIRED = """
DELETE FROM semcache_cacheentry
 WHERE id IN (SELECT id FROM semcache_cacheentry
               WHERE expires_at <= statement_timestamp() OR created_at > statement_timestamp()
               ORDER BY id LIMIT %(batch)s
                 FOR UPDATE SKIP LOCKED)"""

# Pinned rows stand first in their group, so they use its capacity and never leave for it.
_SURPLUS = """
DELETE FROM semcache_cacheentry
 WHERE id IN (
       SELECT id FROM semcache_cacheentry
        WHERE NOT is_pinned AND id IN (
              SELECT id FROM (
                     SELECT e.id, e.is_pinned, row_number() OVER (
                            ORDER BY e.is_pinned DESC, greatest(u.last_used_at, e.created_at) DESC, e.id DESC) AS place
                       FROM semcache_cacheentry e LEFT JOIN semcache_cacheentryuse u ON u.entry_id = e.id
                      WHERE {group}) ranked
               WHERE place > %(capacity)s AND NOT is_pinned LIMIT %(batch)s)
        ORDER BY id FOR UPDATE SKIP LOCKED)"""
SURPLUS_OF_RULE = _SURPLUS.format(group="e.rule_id = %(rule_id)s")
SURPLUS_OF_OWNER = _SURPLUS.format(
    group="e.sharing = 'private' AND e.tenant = %(tenant)s AND e.owner = %(owner)s"
)
SURPLUS_IN_ALL = _SURPLUS.format(group="true")

FULL_RULES = """
SELECT r.id, r.capacity FROM semcache_cacherule r JOIN semcache_cacheentry e ON e.rule_id = r.id
 GROUP BY r.id HAVING count(*) > r.capacity ORDER BY r.id"""
FULL_OWNERS = """
SELECT tenant, owner FROM semcache_cacheentry WHERE sharing = 'private'
 GROUP BY tenant, owner HAVING count(*) > %(capacity)s ORDER BY tenant, owner"""


def delete_expired(batch: int = BATCH) -> int:
    """Delete up to `batch` rows that no look-up would serve any more; rows in another worker's hand stay."""
    return _execute(EXPIRED, {"batch": batch})


def full_rules() -> list[tuple[int, int]]:
    """(rule id, capacity) of the rules with more entries than they may have."""
    return _rows(FULL_RULES, {})


def full_owners(capacity: int) -> list[tuple[str, str]]:
    """(tenant, owner) with more private entries than `capacity`."""
    return _rows(FULL_OWNERS, {"capacity": capacity})


def delete_surplus_of_rule(rule_id: int, capacity: int, batch: int = BATCH) -> int:
    return _execute(SURPLUS_OF_RULE, {"rule_id": rule_id, "capacity": capacity, "batch": batch})


def delete_surplus_of_owner(tenant: str, owner: str, capacity: int, batch: int = BATCH) -> int:
    return _execute(
        SURPLUS_OF_OWNER, {"tenant": tenant, "owner": owner, "capacity": capacity, "batch": batch}
    )


def delete_surplus_in_all(capacity: int, batch: int = BATCH) -> int:
    return _execute(SURPLUS_IN_ALL, {"capacity": capacity, "batch": batch})


def _execute(sql: str, values: dict[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount)


def _rows(sql: str, values: dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
