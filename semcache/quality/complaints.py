"""What people said was wrong: pairs of a question and a stored question whose answer must not serve it again.

A pair holds no words, only hashes: that of the question asked, that of the guard's reading of it (so that the same
question in another order or with other small words is meant, too), and that of the stored question. It lives in one
scope, so that nobody's complaint reaches further than the answer did, and in somebody's own it goes with the answers
that it is about. Synchronous, for database threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from semcache.quality import budget_reports
from semcache.storage import store
from semcache.text.normalize import canonical, exact_key, sha256_of
from semcache.text.reading import read

# The oldest complaints of a scope give way: one is at most as many as the semantic hits that were complained of.
KEPT_PER_SCOPE = 1000


class Complaint(StrEnum):
    """Why a pair is a negative."""

    THUMBS_DOWN = "thumbs-down"
    ASKED_FRESH = "asked-fresh"  # whoever got the stored answer wanted another one
    WRONG_HIT = "wrong-hit"  # said by staff


@dataclass(frozen=True, slots=True)
class Served:
    """A stored answer that was given to the question `asked` of this owner; `generation` repeated it.

    `is_exact`: to the very words it was made for, and after the same history where there was one.
    """

    entry_id: int
    asked: str
    tenant: str
    owner: str
    generation: UUID | None = None
    served_at: datetime | None = None
    is_exact: bool = False


# An owner complains of what was in reach: the own, or what is shared with them, whoever had asked first. Locked before
# the rule that is told of it, as by staff that calls it wrong.
_ENTRY = """
SELECT scope, prompt_sha256, sharing, is_pinned, generation FROM semcache_cacheentry
 WHERE id = %(entry_id)s
   AND (sharing = 'public' OR (tenant = %(tenant)s AND (sharing = 'tenant' OR owner = %(owner)s)))
   FOR UPDATE"""
_ADD = """
INSERT INTO semcache_cachecomplaint
       (scope, asked_sha256, reading_sha256, stored_sha256, why, generations, created_at)
VALUES (%(scope)s, %(asked)s, %(reading)s, %(stored)s, %(why)s, %(generations)s::uuid[], statement_timestamp())
ON CONFLICT (scope, asked_sha256, stored_sha256) DO NOTHING"""
# Whom a stored answer served is known from the log of look-ups, as far as that goes back.
_ADD_LOGGED = """
INSERT INTO semcache_cachecomplaint
       (scope, asked_sha256, reading_sha256, stored_sha256, why, generations, created_at)
SELECT DISTINCT ON (entry.scope, look.prompt_sha256, entry.prompt_sha256)
       entry.scope, look.prompt_sha256, '', entry.prompt_sha256, %(why)s,
       CASE WHEN entry.sharing = 'private' THEN array_remove(ARRAY[entry.generation, look.generation], NULL)
            ELSE '{}' END,
       statement_timestamp()
  FROM semcache_cachelook look JOIN semcache_cacheentry entry ON entry.id = look.neighbour
   AND (entry.scope = look.scope OR entry.source = 'promotion') AND entry.prompt_sha256 <> look.prompt_sha256
 WHERE entry.id = ANY(%(ids)s) AND look.outcome = 'hit-semantic'
ON CONFLICT (scope, asked_sha256, stored_sha256) DO NOTHING"""
_TRIM = """
DELETE FROM semcache_cachecomplaint WHERE id IN (
       SELECT id FROM semcache_cachecomplaint WHERE scope = %(scope)s ORDER BY id DESC OFFSET %(kept)s)"""
_REFUSED = """
SELECT entry.id FROM semcache_cacheentry entry
  JOIN semcache_cachecomplaint complaint
    ON complaint.scope = entry.scope AND complaint.stored_sha256 = entry.prompt_sha256
 WHERE entry.id = ANY(%(ids)s) AND (complaint.asked_sha256 = %(asked)s OR complaint.reading_sha256 = %(reading)s)"""


def refused(asked: str, entry_ids: Sequence[int]) -> frozenset[int]:
    """Those of the entries that must not serve the canonical question `asked`."""
    with connection.cursor() as cursor:
        cursor.execute(_REFUSED, _keys(asked) | {"ids": list(entry_ids)})
        return frozenset(row[0] for row in cursor.fetchall())


def complain(served: Served, why: Complaint) -> bool:
    """Take the owner's word for it; False when they have no such entry in reach.

    Another question was answered: the two are a pair from now on, and a private answer goes after a thumb down. The
    same question was answered: the answer itself is bad and goes; asking afresh replaces it anyway.
    """
    asked = canonical(served.asked)
    with transaction.atomic(), connection.cursor() as cursor:
        values: dict[str, Any] = {"entry_id": served.entry_id, "tenant": served.tenant, "owner": served.owner}
        cursor.execute(_ENTRY, values)
        row = cursor.fetchone()
        if row is None:
            return False
        scope, stored, sharing, is_pinned, made_by = row
        is_theirs = sharing == "private"
        is_other_question = _is_other_question(served, stored)
        if is_other_question:
            pair = {
                "scope": scope,
                "stored": stored,
                "why": why.value,
                "generations": [one for one in (served.generation, made_by) if one] if is_theirs else [],
            }
            cursor.execute(_ADD, _keys(asked) | pair)
            cursor.execute(_TRIM, {"scope": scope, "kept": KEPT_PER_SCOPE})
            if why is Complaint.THUMBS_DOWN:
                _count(served, is_wrong=True)
        if why is Complaint.THUMBS_DOWN and not is_pinned and (is_theirs or not is_other_question):
            store.delete([served.entry_id])
    return True


def approve(served: Served) -> None:
    """The owner's thumb is up: as evidence that it was right to serve this answer to another question."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_ENTRY, {"entry_id": served.entry_id, "tenant": served.tenant, "owner": served.owner})
        row = cursor.fetchone()
        if row is None:
            budget_reports.turned(served.generation)  # a thumb down has evicted it
        elif _is_other_question(served, row[1]):
            _count(served, is_wrong=False)


def mark_wrong(entry_ids: Sequence[int]) -> int:
    """Staff calls what these entries served wrong: they go, and never again serve those they served; how many went."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_ADD_LOGGED, {"ids": list(entry_ids), "why": Complaint.WRONG_HIT.value})
        budget_reports.marks(entry_ids)
        return store.delete(entry_ids)


def _is_other_question(served: Served, stored: str) -> bool:
    """Whether the answer was made for another question; the key of one with a history can't be told from its text."""
    return not served.is_exact and _keys(canonical(served.asked))["asked"] != stored


def _count(served: Served, *, is_wrong: bool) -> None:
    if served.generation is not None and served.served_at is not None:
        asked = _keys(canonical(served.asked))["asked"]
        budget_reports.thumb(served.entry_id, asked, served.generation, served.served_at, is_wrong=is_wrong)


def _keys(asked: str) -> dict[str, Any]:
    return {"asked": exact_key(asked, ""), "reading": _reading_key(asked)}


def _reading_key(asked: str) -> str:
    """What the guard reads in a question, whatever the order; never that of a question in which it reads nothing."""
    reading = read(asked)
    parts = (sorted(reading.words), sorted(reading.numbers), sorted(reading.dates), sorted(reading.sides))
    return (
        sha256_of("reading", repr((parts, reading.is_negated, reading.asks_for))) if reading.words else "none"
    )
