"""What readers and staff say of stored answers, as evidence of the budget: thumbs, and marks of wrong hits.

How alike the two questions were, and which rule served, is known from the log of look-ups as far as that goes back.
Synchronous, within the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection

from semcache.models import CacheCheck
from semcache.quality import budget
from semcache.quality.budget import Kind

# By rule, so that two who mark several answers at once never wait for each other in a circle.
_SERVED = """
SELECT entry.id, coalesce(look.rule_id, entry.rule_id), look.similarity, look.score
  FROM semcache_cacheentry entry
  LEFT JOIN LATERAL (
       SELECT * FROM semcache_cachelook look
        WHERE look.neighbour = entry.id AND look.outcome = 'hit-semantic'
          AND (look.prompt_sha256 = %(asked)s OR %(asked)s = '')
        ORDER BY look.id DESC LIMIT 1) look ON true
 WHERE entry.id = ANY(%(ids)s) ORDER BY 2, entry.id"""


def thumb(entry_id: int, asked_sha256: str, generation: UUID, served_at: datetime, *, is_wrong: bool) -> None:
    """A reader's thumb on the answer that this generation repeated, to another question than it was made for."""
    for _, rule_id, similarity, score in _served([entry_id], asked_sha256):
        budget.record(
            rule_id, Kind.THUMB, is_wrong, generation=generation, entry=entry_id, similarity=similarity, score=score,
            served_at=served_at,
        )  # fmt: skip


def turned(generation: UUID | None) -> None:
    """A thumb on an answer that is no longer stored is up now."""
    CacheCheck.objects.filter(generation=generation, kind=Kind.THUMB).update(is_wrong=False)


def marks(entry_ids: Sequence[int]) -> None:
    """Staff calls what these entries served wrong: one wrong answer for each, however many they served."""
    for entry_id, rule_id, similarity, score in _served(entry_ids):
        budget.record(rule_id, Kind.STAFF, True, entry=entry_id, similarity=similarity, score=score)


def _served(
    entry_ids: Sequence[int], asked_sha256: str = ""
) -> list[tuple[int, int, float | None, float | None]]:
    """(entry, rule, similarity, score) of what the entries served last by meaning, or served to this question."""
    with connection.cursor() as cursor:
        cursor.execute(_SERVED, {"ids": list(entry_ids), "asked": asked_sha256})
        return list(cursor.fetchall())
