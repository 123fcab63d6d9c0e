"""The SQL of look-up and insertion: exact by key, nearest by vector, one row per scope and prompt.

Synchronous, for database threads. Knows rows and vectors, not rules' meaning: the caller says which scope, key and
time to live apply. The scope stands in every WHERE clause; nothing is filtered after the fact.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from semcache.decision import Answer, Hit
from semcache.storage.shared_index import MAX_DIM, half_name_of

logger = logging.getLogger(__name__)
NUM_NEIGHBOURS = 8

# Time is the database's. A row from the future (a wrong clock, a bad import) would stay fresh for ever, so it
# counts as expired. An edited time to live acts on rows that exist, as does the one of the rule that now decides.
_ENDS_AT = "least(e.expires_at, e.created_at + least(r.ttl_s, %(ttl_s)s) * interval '1 second')"
# How long after its end a row is still served while it is made anew, if the rule that keeps it lets it, too.
_WINDOW = """
      CASE WHEN e.may_be_stale AND r.is_enabled AND r.mode IN ('exact', 'semantic')
           THEN least(r.stale_s, %(stale_s)s) ELSE 0 END * interval '1 second'"""
# The first line is for the index, which has no ends but `expires_at`.
_LIVE = f"""
      e.expires_at > statement_timestamp() - %(stale_s)s * interval '1 second'
  AND e.created_at <= statement_timestamp() AND {_ENDS_AT} + {_WINDOW} > statement_timestamp()"""
_COLUMNS = f"""
SELECT e.id, e.question, e.answer, e.token_ids, e.tokenizer, e.num_tokens, e.took_ms, e.created_at,
       extract(epoch FROM statement_timestamp() - e.created_at)::int AS age_s,
       e.prompt_sha256, {_ENDS_AT} <= statement_timestamp() AS is_stale,
       e.sharing, e.context, e.generation"""  # noqa: S608 - this module's own texts
_TABLES = """
  FROM semcache_cacheentry e JOIN semcache_cacherule r ON r.id = e.rule_id"""

EXACT = (
    f"{_COLUMNS}, 1.0 AS similarity {_TABLES} WHERE e.scope = %(scope)s AND e.prompt_sha256 = %(prompt_sha256)s"
    f" AND {_LIVE}"
)
# Of several places in one statement, in their order.
AT_PLACES = """
SELECT found.* FROM unnest(%(scopes)s::text[], %(keys)s::text[]) WITH ORDINALITY AS place (scope, prompt_sha256, rank)
 CROSS JOIN LATERAL ({at_place}) found ORDER BY place.rank"""
# Vectors of every embedder and size stand in one column; only within one embedder's means a distance anything.
# What hangs on something said before can't be made anew by whoever finds it by meaning, so it ends at its end.
_IN_SCOPE = f"""
 WHERE e.scope = %(scope)s AND e.embedder = %(embedder)s AND vector_dims(e.embedding) = %(dim)s AND {_LIVE}
   AND (e.context = '{{}}' OR {_ENDS_AT} > statement_timestamp())"""
# No vector index: inside one scope an exact scan is faster and never loses a row to a filter.
NEAREST = (
    f"{_COLUMNS}, 1 - (e.embedding <=> %(vector)s::vector) AS similarity {_TABLES} {_IN_SCOPE}"
    " ORDER BY e.embedding <=> %(vector)s::vector, e.id LIMIT %(limit)s"
)
# Ordered as `shared_index` has it, word for word: where the scope is big, the planner takes that index. Its relaxed
# order, and that of halved numbers, is put right afterwards.
_SHARED = f"""
  WITH found AS ({_COLUMNS}, 1 - (e.embedding <=> %(vector)s::vector) AS similarity {_TABLES} {_IN_SCOPE}
   AND e.sharing = 'public' ORDER BY e.embedding::{{type}}(%(dim)s) <=> %(vector)s::{{type}}(%(dim)s) LIMIT %(limit)s)
 TABLE found ORDER BY similarity DESC, id"""
NEAREST_SHARED = _SHARED.replace("{type}", "vector")
NEAREST_SHARED_HALF = _SHARED.replace("{type}", "halfvec")
# Without the first the index looks at its 40 nearest rows, whosever they are, and finds nothing for a small scope. The
# second says which kind of index there is at this moment; it changes overnight.
BEFORE_SHARED = """
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),
       EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%(half)s) AND indisvalid)"""
# The first moment of the site's next day. Where clocks are put back at midnight, it comes twice, and PostgreSQL takes
# the second one.
_TOMORROW = "(date_trunc('day', statement_timestamp() AT TIME ZONE %(zone)s) + interval '1 day')"
_HOUR_BEFORE = f"({_TOMORROW} AT TIME ZONE %(zone)s - interval '1 hour')"
END_OF_DAY = f"""
      CASE WHEN {_HOUR_BEFORE} AT TIME ZONE %(zone)s >= {_TOMORROW}
           THEN {_HOUR_BEFORE} ELSE {_TOMORROW} AT TIME ZONE %(zone)s END"""
# A row that is younger than ours was written by a race we lost; it stays. One from the future never wins. What staff
# pinned or brought in is theirs until it ends: whoever asks afresh gets a new answer, and nobody else does.
INSERT = f"""
INSERT INTO semcache_cacheentry AS stored
       (scope, prompt_sha256, question, answer, embedding, rule_id, sharing, tenant, owner, model_revision, embedder,
        generation, token_ids, tokenizer, num_tokens, took_ms, context, may_be_stale, source, is_pinned,
        created_at, expires_at)
VALUES (%(scope)s, %(prompt_sha256)s, %(question)s, %(answer)s, %(vector)s::vector, %(rule_id)s, %(sharing)s,
        %(tenant)s, %(owner)s, %(model_revision)s, %(embedder)s, %(generation)s, %(token_ids)s, %(tokenizer)s,
        %(num_tokens)s, %(took_ms)s, %(context)s, NOT %(is_for_today)s AND %(source)s <> 'import', %(source)s, false,
        statement_timestamp(),
        least(statement_timestamp() + %(ttl_s)s * interval '1 second',
              CASE WHEN %(is_for_today)s THEN {END_OF_DAY} END))
ON CONFLICT (scope, prompt_sha256) DO UPDATE SET
       question = excluded.question, answer = excluded.answer, embedding = excluded.embedding,
       rule_id = excluded.rule_id, sharing = excluded.sharing, tenant = excluded.tenant, owner = excluded.owner,
       embedder = excluded.embedder, generation = excluded.generation,
       token_ids = excluded.token_ids, tokenizer = excluded.tokenizer, num_tokens = excluded.num_tokens,
       took_ms = excluded.took_ms, context = excluded.context, may_be_stale = excluded.may_be_stale,
       source = excluded.source,
       created_at = excluded.created_at, expires_at = excluded.expires_at
 WHERE (excluded.created_at > stored.created_at OR stored.created_at > statement_timestamp())
   AND (excluded.source = 'import' OR stored.expires_at <= statement_timestamp()
        OR NOT (stored.is_pinned OR stored.source = 'import'))
RETURNING id"""  # noqa: S608 - this module's own texts
# The row that was seen and no other: what was evicted, erased, edited or replaced meanwhile stays so.
REFRESH = """
UPDATE semcache_cacheentry e
   SET answer = %(answer)s, token_ids = %(token_ids)s, tokenizer = %(tokenizer)s, num_tokens = %(num_tokens)s,
       took_ms = %(took_ms)s, created_at = statement_timestamp(),
       expires_at = statement_timestamp() + r.ttl_s * interval '1 second'
  FROM semcache_cacherule r
 WHERE r.id = e.rule_id AND e.id = %(entry_id)s AND e.created_at = %(created_at)s AND e.may_be_stale
   AND e.model_revision = %(model_revision)s"""
# A complaint of anybody's is enough: such an answer is not served past its end.
DOUBTED = """
SELECT e.id FROM semcache_cacheentry e
  JOIN semcache_cachecomplaint c ON c.scope = e.scope AND c.stored_sha256 = e.prompt_sha256
 WHERE e.id = ANY(%(ids)s) AND c.created_at >= e.created_at"""
# In id order, like everything that holds several entries at once: two deleters never wait for each other in a circle.
_DELETE = """
DELETE FROM semcache_cacheentry
 WHERE id IN (SELECT id FROM semcache_cacheentry WHERE {condition} ORDER BY id FOR UPDATE)"""
DELETE = _DELETE.format(condition="id = ANY(%(ids)s)")
DELETE_MADE_FROM = _DELETE.format(condition="generation = ANY(%(generations)s)")


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A row to be. `vector` is None for one that only its exact text may find; `is_for_today` ends it at midnight."""

    scope: str
    prompt_sha256: str
    question: str
    answer: str
    vector: Sequence[float] | None
    rule_id: int
    sharing: str
    tenant: str
    owner: str
    model_revision: str
    embedder: str
    generation: UUID | None
    token_ids: tuple[int, ...]
    tokenizer: str
    num_tokens: int
    ttl_s: int
    is_for_today: bool
    took_ms: float = 0.0
    context: tuple[str, ...] = ()
    source: str = "answer"


def find_exact(places: Iterable[tuple[str, str]], ttl_s: int, stale_s: int = 0) -> Hit | None:
    """The live entry at the first of the (scope, prompt hash) places that has one."""
    scopes, keys = map(list, zip(*places, strict=True))
    found = _fetch(exact_at_places(), {"scopes": scopes, "keys": keys, "ttl_s": ttl_s, "stale_s": stale_s})
    return found[0] if found else None


def exact_at_places() -> str:
    at_place = EXACT.replace("%(scope)s", "place.scope").replace("%(prompt_sha256)s", "place.prompt_sha256")
    return AT_PLACES.format(at_place=at_place)


def find_nearest(
    scope: str,
    embedder: str,
    vector: Sequence[float],
    ttl_s: int,
    stale_s: int = 0,
    *,
    is_shared: bool = False,
) -> list[Hit]:
    """The live entries of the scope that are most alike, best first."""
    values = {"scope": scope, "embedder": embedder, "vector": vector_text(vector), "ttl_s": ttl_s,
              "stale_s": stale_s, "dim": len(vector), "limit": NUM_NEIGHBOURS}  # fmt: skip
    if not is_shared:
        return _fetch(NEAREST, values)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(BEFORE_SHARED, {"half": half_name_of(len(vector))})
            ((_, is_half),) = cursor.fetchall()
        return _fetch(NEAREST_SHARED_HALF if is_half else NEAREST_SHARED, values)


def insert(entry: NewEntry) -> int | None:
    """The id of the written row; None when a younger one is already there."""
    values = {name: getattr(entry, name) for name in entry.__dataclass_fields__}
    values["vector"] = None if entry.vector is None else vector_text(entry.vector)
    values["token_ids"] = list(entry.token_ids)
    values["context"] = list(entry.context)
    values["zone"] = timezone.get_current_timezone_name()
    with connection.cursor() as cursor:
        cursor.execute(INSERT, values)
        row = cursor.fetchone()
    return None if row is None else int(row[0])


def refresh(entry_id: int, created_at: datetime, model_revision: str, answer: Answer) -> bool:
    """Replace a stored answer by one that was made anew, with a new life; False when it is no longer the one of
    `created_at` or of that model."""
    values: dict[str, Any] = {
        "entry_id": entry_id, "created_at": created_at, "model_revision": model_revision, "answer": answer.text,
        "token_ids": list(answer.token_ids), "tokenizer": answer.tokenizer, "num_tokens": answer.num_tokens,
        "took_ms": answer.took_ms,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(REFRESH, values)
        return int(cursor.rowcount) == 1


def delete(ids: Sequence[int]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(DELETE, {"ids": list(ids)})
        return int(cursor.rowcount)


def delete_made_from(generations: Sequence[UUID]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(DELETE_MADE_FROM, {"generations": list(generations)})
        return int(cursor.rowcount)


def is_usable(vector: Sequence[float]) -> bool:
    """Whether a distance to the vector can be told."""
    return 1 <= len(vector) <= MAX_DIM and all(map(math.isfinite, vector)) and any(vector)


def vector_text(vector: Sequence[float]) -> str:
    """The vector as pgvector reads it."""
    return "[" + ",".join(f"{value:.7g}" for value in vector) + "]"


def _fetch(sql: str, values: dict[str, Any]) -> list[Hit]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        found = [hit for row in cursor.fetchall() if (hit := _hit(row)) is not None]
        stale = [hit.entry_id for hit in found if hit.is_stale]
        if not stale:
            return found
        cursor.execute(DOUBTED, {"ids": stale})
        doubted = {row[0] for row in cursor.fetchall()}
    return [hit for hit in found if hit.entry_id not in doubted]


def _hit(row: Sequence[Any]) -> Hit | None:
    """The row as a value; None for one that an import or a hand wrote and that no answer can be made of."""
    entry_id, question, answer, token_ids, tokenizer, num_tokens, took_ms, *rest = row
    created_at, age_s, key, is_stale, sharing, context, generation, similarity = rest
    if not answer.strip() or math.isnan(similarity) or not all(isinstance(token, int) for token in token_ids):
        _report(entry_id)
        return None
    return Hit(
        entry_id=entry_id,
        question=question,
        answer=answer,
        token_ids=tuple(token_ids),
        tokenizer=tokenizer,
        num_tokens=num_tokens,
        took_ms=took_ms,
        created_at=created_at,
        age_s=age_s,
        similarity=float(similarity),
        prompt_sha256=key,
        is_stale=is_stale,
        sharing=sharing,
        context=tuple(context),
        generation=generation,
    )


@lru_cache(maxsize=1000)
def _report(entry_id: int) -> None:
    """Once for each entry, not for each look-up."""
    logger.warning(
        "cache entry %d is skipped: it has no text, no direction, or token ids that are none", entry_id
    )
