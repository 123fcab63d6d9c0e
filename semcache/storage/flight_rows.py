"""The SQL of flights: who makes the answer to a question that several ask at once, and who else waits for it.

Synchronous, for database threads; every step is one short transaction, so nothing is locked while an answer is made.
Knows generations as opaque ids. A flight is a lease: one whose time is up is taken over by whoever asks next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction

CLEAR = """
DELETE FROM semcache_cacheflight
 WHERE scope = %(scope)s AND prompt_sha256 = %(prompt_sha256)s AND expires_at <= statement_timestamp()"""
BOARD = """
INSERT INTO semcache_cacheflight AS flight (scope, prompt_sha256, leader, aboard, is_up, is_landed, expires_at)
VALUES (%(scope)s, %(prompt_sha256)s, %(me)s, ARRAY[%(me)s::uuid], false, false,
        statement_timestamp() + %(lease_s)s * interval '1 second')
ON CONFLICT (scope, prompt_sha256) DO UPDATE SET aboard = flight.aboard || excluded.aboard
RETURNING leader"""
DEPART = """
UPDATE semcache_cacheflight
   SET is_up = true, expires_at = statement_timestamp() + %(lease_s)s * interval '1 second'
 WHERE leader = %(me)s"""
STATE = (
    "SELECT is_up FROM semcache_cacheflight WHERE leader = %(leader)s AND expires_at > statement_timestamp()"
)
ABOARD = """
SELECT leader, aboard, is_up FROM semcache_cacheflight
 WHERE (leader = %(me)s OR %(me)s = ANY(aboard)) AND expires_at > statement_timestamp()"""
LEAVE = """
UPDATE semcache_cacheflight SET aboard = array_remove(aboard, %(me)s)
 WHERE (leader = %(me)s OR %(me)s = ANY(aboard)) AND expires_at > statement_timestamp()
RETURNING leader, aboard, is_up"""
LAND = "UPDATE semcache_cacheflight SET is_landed = true WHERE leader = %(leader)s AND NOT is_landed"
DISBAND = "DELETE FROM semcache_cacheflight WHERE leader = %(leader)s"
# Whoever is erased gets off; a flight without anybody aboard goes, one that others wait for goes on for them.
GET_OFF = """
UPDATE semcache_cacheflight
   SET aboard = ARRAY(SELECT one FROM unnest(aboard) AS one WHERE one <> ALL(%(generations)s::uuid[]))
 WHERE aboard && %(generations)s::uuid[]"""
EMPTIED = "DELETE FROM semcache_cacheflight WHERE leader = ANY(%(generations)s) AND aboard = '{}'"
# Those whose process died and that nobody asks for again.
FORGOTTEN = """
DELETE FROM semcache_cacheflight
 WHERE id IN (SELECT id FROM semcache_cacheflight
               WHERE expires_at <= statement_timestamp() - interval '1 minute'
               ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)"""


@dataclass(frozen=True, slots=True)
class Flight:
    """The generation that makes the answer, and everybody who waits for it, the leader too while it does."""

    leader: UUID
    aboard: tuple[UUID, ...]
    is_up: bool


def board(scope: str, prompt_sha256: str, me: UUID, lease_s: float) -> UUID:
    """Join the flight to this answer, or begin it; its leader, which is `me` when there was none alive."""
    values: dict[str, Any] = {"scope": scope, "prompt_sha256": prompt_sha256, "me": me, "lease_s": lease_s}
    with connection.cursor() as cursor:
        cursor.execute(CLEAR, values)
        cursor.execute(BOARD, values)
        leader = UUID(str(cursor.fetchone()[0]))
        if leader == me:
            cursor.execute(FORGOTTEN)
    return leader


def depart(me: UUID, lease_s: float) -> bool:
    """The leader's generation can be followed from now on; False when another one has taken the lead."""
    return _execute(DEPART, {"me": me, "lease_s": lease_s}) == 1


def is_up(leader: UUID) -> bool | None:
    """Whether the generation can be followed; None when nobody leads under that id any more."""
    with connection.cursor() as cursor:
        cursor.execute(STATE, {"leader": leader})
        row = cursor.fetchone()
    return None if row is None else bool(row[0])


def find(me: UUID) -> Flight | None:
    """The flight that this generation leads or waits for."""
    with connection.cursor() as cursor:
        cursor.execute(ABOARD, {"me": me})
        return _flight(cursor.fetchone())


def leave(me: UUID) -> Flight | None:
    """Get off; the flight as it is after that. It is gone when nobody is aboard any more."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LEAVE, {"me": me})
        flight = _flight(cursor.fetchone())
        if flight is not None and not flight.aboard:
            cursor.execute(DISBAND, {"leader": flight.leader})
    return flight


def land(leader: UUID) -> bool:
    """True for the first who says that the answer is whole: the one who stores it."""
    return _execute(LAND, {"leader": leader}) == 1


def disband(leader: UUID) -> None:
    """The answer is stored, or nobody makes it: the next one who asks begins anew."""
    _execute(DISBAND, {"leader": leader})


def forget(generations: Sequence[UUID]) -> int:
    """These wait for nothing any more; how many flights went."""
    _execute(GET_OFF, {"generations": list(generations)})
    return _execute(EMPTIED, {"generations": list(generations)})


def _execute(sql: str, values: dict[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount)


def _flight(row: tuple[Any, Any, Any] | None) -> Flight | None:
    return None if row is None else Flight(row[0], tuple(row[1]), row[2])
