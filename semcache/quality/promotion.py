"""How an answer becomes everybody's: counting who asked the same, and the public copy once enough of them did.

Synchronous, for database threads. Each asker has a seat in the question's row: a salted hash of who it is, the entry
with their own answer, and the generation that made it, by which erasing finds the seat. While a public copy lives
nobody is counted; when it is gone, however it went, counting starts from nothing.

Whoever holds a question's row and then an entry never meets somebody the other way round: rows of questions are locked
first, in id order, or skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.crypto import salted_hmac

from semcache.models import CacheEntry, CachePromotion
from semcache.storage import store
from semcache.text import personal
from semcache.text.agreement import agreement

# So many askers that the public answer tells of none of them that they asked.
NUM_ASKERS = 3
# Four words of five in common, and the same numbers: two samples of one model that say the same reach it, two that tell
# of different things do not. A bound set by hand; what it cannot see is a contradiction in one word of a long answer,
# which is why thumbs and checks go on after the promotion.
AGREE_FROM = 0.8
# Where answers go on disagreeing the oldest seats are given up.
MAX_SEATS = 20
KEPT_DAYS = 30
BATCH = 500

# Locks the row. A rule that took the question over has the copy, too.
_TAKE = """
INSERT INTO semcache_cachepromotion AS stored
       (scope, prompt_sha256, rule_id, askers, entries, generations, created_at)
VALUES (%(scope)s, %(prompt_sha256)s, %(rule_id)s, '{}', '{}', '{}', statement_timestamp())
ON CONFLICT (scope, prompt_sha256) DO UPDATE SET rule_id = excluded.rule_id
RETURNING id"""
# It waits for an erasure under way, and then the entry is gone.
_IS_THERE = "SELECT 1 FROM semcache_cacheentry WHERE id = %(entry_id)s FOR KEY SHARE"
_ANSWERS = """
SELECT e.id, e.answer, e.created_at FROM semcache_cacheentry e JOIN semcache_cacherule r ON r.id = e.rule_id
 WHERE e.id = ANY(%(entries)s) AND r.sharing = 'promoted' AND r.is_enabled
   AND e.expires_at > statement_timestamp() AND e.created_at <= statement_timestamp()
   AND e.created_at + r.ttl_s * interval '1 second' > statement_timestamp()"""
_CLEAR = """
DELETE FROM semcache_cacheentry
 WHERE id IN (SELECT id FROM semcache_cacheentry WHERE scope = %(scope)s AND prompt_sha256 = %(prompt_sha256)s
                 FOR UPDATE SKIP LOCKED)"""
# As old as the words it holds, and never served past its time: nobody's single new answer takes its place.
_COPY = """
INSERT INTO semcache_cacheentry
       (scope, prompt_sha256, question, answer, embedding, rule_id, sharing, tenant, owner, model_revision, embedder,
        token_ids, tokenizer, num_tokens, took_ms, context, may_be_stale, source, is_pinned, created_at, expires_at)
SELECT %(scope)s, %(prompt_sha256)s, question, answer, embedding, rule_id, 'public', '', '', model_revision, embedder,
       token_ids, tokenizer, num_tokens, took_ms, '{}', false, 'promotion', false, created_at, expires_at
  FROM semcache_cacheentry WHERE id = %(source)s
ON CONFLICT (scope, prompt_sha256) DO NOTHING
RETURNING id"""
_TRIM = """
DELETE FROM semcache_cachepromotion
 WHERE id IN (SELECT p.id FROM semcache_cachepromotion p
               WHERE p.created_at < statement_timestamp() - %(days)s * interval '1 day'
                 AND NOT EXISTS (SELECT 1 FROM semcache_cacheentry e
                                  WHERE e.scope = p.scope AND e.prompt_sha256 = p.prompt_sha256)
               ORDER BY p.id LIMIT %(batch)s FOR UPDATE SKIP LOCKED)"""


@dataclass(frozen=True, slots=True)
class Asking:
    """Somebody got an answer of their own, `entry_id`, to a question whose public place is `scope` and the hash."""

    scope: str
    prompt_sha256: str
    rule_id: int
    ttl_s: int
    tenant: str
    owner: str
    entry_id: int
    generation: UUID | None


@dataclass(frozen=True, slots=True)
class Given:
    """An asker's answer that is still stored."""

    entry_id: int
    text: str
    created_at: datetime


def note(asking: Asking) -> int | None:
    """Count the asker; the public copy's id when this was the one that was missing."""
    with transaction.atomic():
        row = CachePromotion.objects.get(pk=_rows(_TAKE, _values(asking))[0][0])
        is_public = store.find_exact([(row.scope, row.prompt_sha256)], asking.ttl_s) is not None
        if is_public or not _rows(_IS_THERE, {"entry_id": asking.entry_id}):
            return None
        if row.promoted_at is not None:
            _start_over(row)
        _seat(row, asking)
        given = [Given(*one) for one in _rows(_ANSWERS, {"entries": row.entries})]
        chosen = agreed(given) if len(row.askers) >= NUM_ASKERS else None
        copy = _copied(row, chosen.entry_id) if chosen else None
        row.save()
        return copy


def agreed(given: Iterable[Given]) -> Given | None:
    """The youngest of the answers that another asker's agrees with, among those in which nothing is anybody's."""
    impersonal = [one for one in given if not personal.kinds_in(one.text)]
    backed = [
        one
        for pair in combinations(impersonal, 2)
        if agreement(pair[0].text, pair[1].text) >= AGREE_FROM
        for one in pair
    ]
    return max(backed, key=lambda one: (one.created_at, one.entry_id), default=None)


def promote(entry_ids: Sequence[int]) -> list[int]:
    """Make these answers public as they are, for staff that has read them; those of them that could be.

    Those can't whose question is its asker's own or follows on something, that no `promoted` rule keeps any more, and
    whose question has a public answer.
    """
    promoted = []
    with transaction.atomic():
        asked = CachePromotion.objects.select_for_update(skip_locked=True, of=("self",)).select_related(
            "rule"
        )
        for row in asked.filter(entries__overlap=list(entry_ids)).order_by("pk"):
            wanted = [entry_id for entry_id in row.entries if entry_id in entry_ids]
            given = [Given(*one) for one in _rows(_ANSWERS, {"entries": wanted})]
            is_public = store.find_exact([(row.scope, row.prompt_sha256)], row.rule.ttl_s) is not None
            if given and not is_public:
                youngest = max(given, key=lambda one: (one.created_at, one.entry_id))
                if _copied(row, youngest.entry_id) is not None:
                    promoted.append(youngest.entry_id)
                row.save()
    return promoted


def withdraw(generations: Sequence[UUID]) -> int:
    """Whoever is erased takes the seat along, and the public answer that rests on it; how many answers went.

    In the caller's transaction. The others' seats stay, so the next of them to ask may make it public again.
    """
    erased, places = frozenset(generations), []
    asked = CachePromotion.objects.select_for_update().filter(generations__overlap=list(generations))
    for row in asked.order_by("pk"):
        _give_up(row, [place for place, made_by in enumerate(row.generations) if made_by in erased])
        row.promoted_at = None
        row.save() if row.askers else row.delete()
        places.append((row.scope, row.prompt_sha256))
    copies = CacheEntry.objects.filter(source=CacheEntry.Source.PROMOTION)
    found = [
        copies.filter(scope=scope, prompt_sha256=key).values_list("pk", flat=True) for scope, key in places
    ]
    return store.delete([pk for pks in found for pk in pks]) if places else 0


def resting_on(entries: QuerySet[CacheEntry]) -> QuerySet[CacheEntry]:
    """The public answers that rest on any of these own ones."""
    asked = CachePromotion.objects.filter(
        scope=OuterRef("scope"),
        prompt_sha256=OuterRef("prompt_sha256"),
        entries__overlap=ArraySubquery(entries.values("pk")),
    )
    return CacheEntry.objects.filter(Exists(asked), source=CacheEntry.Source.PROMOTION)


def trim(batch: int = BATCH) -> int:
    """Forget up to `batch` questions that began to be counted long ago and have no public answer."""
    with connection.cursor() as cursor:
        cursor.execute(_TRIM, {"days": KEPT_DAYS, "batch": batch})
        return int(cursor.rowcount)


def asker_hash(tenant: str, owner: str) -> str:
    """Tells askers apart and names none: it can't be made again without the project's secret key."""
    return salted_hmac("semcache.quality.promotion", f"{tenant}\0{owner}", algorithm="sha256").hexdigest()


def _seat(row: CachePromotion, asking: Asking) -> None:
    """One seat for each asker, whose latest answer counts."""
    asker = asker_hash(asking.tenant, asking.owner)
    _give_up(row, [place for place, sits in enumerate(row.askers) if sits == asker])
    row.askers.append(asker)
    row.entries.append(asking.entry_id)
    row.generations.append(asking.generation)
    _give_up(row, range(len(row.askers) - MAX_SEATS))


def _give_up(row: CachePromotion, places: Iterable[int]) -> None:
    gone = frozenset(places)
    row.askers = [one for place, one in enumerate(row.askers) if place not in gone]
    row.entries = [one for place, one in enumerate(row.entries) if place not in gone]
    row.generations = [one for place, one in enumerate(row.generations) if place not in gone]


def _start_over(row: CachePromotion) -> None:
    row.askers, row.entries, row.generations, row.promoted_at = [], [], [], None
    row.created_at = _now()


def _copied(row: CachePromotion, source: int) -> int | None:
    """The id of the public copy; what stood in its place was served to nobody any more."""
    values: dict[str, Any] = {"scope": row.scope, "prompt_sha256": row.prompt_sha256, "source": source}
    with connection.cursor() as cursor:
        cursor.execute(_CLEAR, values)
    copies = _rows(_COPY, values)
    if not copies:
        return None
    row.promoted_at = _now()
    return int(copies[0][0])


def _now() -> datetime:
    """The database's clock, as everywhere in the cache."""
    ((now,),) = _rows("SELECT statement_timestamp()", {})
    assert isinstance(now, datetime)
    return now


def _values(asking: Asking) -> dict[str, Any]:
    return {"scope": asking.scope, "prompt_sha256": asking.prompt_sha256, "rule_id": asking.rule_id}


def _rows(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
