"""Who makes an answer once more behind the scenes: at most a few at once, and each of them one worker only.

A place is a lease in the table of flights, under a scope that no question has, so nobody who asks waits for it. Who
dies leaves a place that is free when its time is up. Synchronous, for database threads; every step is one short
transaction.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection, transaction

SCOPE = "again"
# Any number that nobody else uses as an advisory lock in this database.
PLACES_LOCK = 0x5E3C_A6A1

LOCK = "SELECT pg_advisory_xact_lock(%(lock)s)"
CLEAR = "DELETE FROM semcache_cacheflight WHERE scope = %(scope)s AND expires_at <= statement_timestamp()"
RESERVE = """
INSERT INTO semcache_cacheflight (scope, prompt_sha256, leader, aboard, is_up, is_landed, expires_at)
SELECT %(scope)s, %(what)s, %(run)s, '{}', false, false, statement_timestamp() + %(lease_s)s * interval '1 second'
 WHERE (SELECT count(*) FROM semcache_cacheflight WHERE scope = %(scope)s) < %(at_most)s
ON CONFLICT (scope, prompt_sha256) DO NOTHING"""
CLAIM = """
UPDATE semcache_cacheflight
   SET is_up = true, expires_at = statement_timestamp() + %(lease_s)s * interval '1 second'
 WHERE leader = %(run)s AND NOT is_up AND expires_at > statement_timestamp()"""
RELEASE = "DELETE FROM semcache_cacheflight WHERE leader = %(run)s"


def reserve(what: str, run: UUID, lease_s: float, at_most: int) -> bool:
    """A place for `run`, which makes `what` again; False when somebody does that, or too much is under way."""
    values: dict[str, Any] = {
        "scope": SCOPE, "what": what, "run": run, "lease_s": lease_s, "at_most": at_most, "lock": PLACES_LOCK,
    }  # fmt: skip
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK, values)  # two that counted at once would both take the last place
        cursor.execute(CLEAR, values)
        cursor.execute(RESERVE, values)
        return int(cursor.rowcount) == 1


def claim(run: UUID, lease_s: float) -> bool:
    """True for the one worker that makes it, however often it is delivered; False when its time is up."""
    return _execute(CLAIM, {"run": run, "lease_s": lease_s}) == 1


def release(run: UUID) -> None:
    """Nobody makes it any more; the next one who asks may begin anew."""
    _execute(RELEASE, {"run": run})


def _execute(sql: str, values: dict[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount)
