"""Vectors made anew after a change of embedder, in the background.

A distance between vectors of two embedders means nothing, so an entry whose vector another embedder made is found by
its exact words only. Here such entries get a vector of the embedder in force. Vector and name change in one statement,
so no look-up ever sees one beside the other's; no row is held while its text is embedded, so nobody waits.
For workers. Knows rows and what the project lends; knows no scopes and no rules.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.db import connection

from semcache.decision import Embed
from semcache.lending import Asked, lent, run
from semcache.storage.store import is_usable, vector_text
from semcache.storage.threads import in_database
from semcache.text.context import embedded

logger = logging.getLogger(__name__)

# A question that is asked meanwhile waits for no more texts than these.
BATCH = 8

# Two ranges, as the index has them. Newest first: those live longest.
_NEXT = """
(SELECT id, question, context FROM semcache_cacheentry
  WHERE embedding IS NOT NULL AND embedder < %(tag)s ORDER BY embedder DESC, id DESC LIMIT %(batch)s)
UNION ALL
(SELECT id, question, context FROM semcache_cacheentry
  WHERE embedding IS NOT NULL AND embedder > %(tag)s ORDER BY embedder DESC, id DESC LIMIT %(batch)s)
LIMIT %(batch)s"""
_COUNT = """
SELECT count(*) FROM semcache_cacheentry
 WHERE embedding IS NOT NULL AND (embedder < %(tag)s OR embedder > %(tag)s)"""
# The row may have been evicted, or answered anew by the new embedder, while its text was embedded.
_STORE = """
UPDATE semcache_cacheentry entry SET embedding = made.vector::vector, embedder = %(tag)s
  FROM unnest(%(ids)s::bigint[], %(questions)s::text[], %(vectors)s::text[]) AS made (id, question, vector)
 WHERE entry.id = made.id AND entry.question = made.question AND entry.embedder <> %(tag)s
   AND entry.id IN (SELECT id FROM semcache_cacheentry WHERE id = ANY(%(ids)s) ORDER BY id FOR UPDATE SKIP LOCKED)"""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An entry with a vector of another embedder."""

    id: int
    question: str
    context: list[str]


def renew_next() -> int:
    """Vectors for the next entries that wait for them; how many. 0 when none waits or nobody embeds them now.

    Doing it twice, or in two workers at once, has the effect of doing it once.
    """
    return run(_renew_next)


def num_waiting() -> int:
    """How many entries only their exact words find until they are embedded anew; 0 while nobody lends an embedder.

    For pages.
    """
    asked = async_to_sync(lent)("", "", "")
    return 0 if asked is None else _count(asked.question.embedder)


async def _renew_next() -> int:
    asked = await lent("", "", "")
    if asked is None or await _is_taken(asked):
        return 0
    tag = asked.question.embedder
    waiting = await in_database(_next, tag)
    if not waiting:
        return 0
    began = time.perf_counter()
    try:
        vectors = await _vectors(asked.embed, [embedded(entry.question, entry.context) for entry in waiting])
    except OSError as error:
        logger.warning("answers wait for the new embedder: %s", error)
        return 0
    num_renewed = await in_database(_store, tag, waiting, vectors)
    # Half of the time is left to everybody else.
    await asyncio.sleep(time.perf_counter() - began)
    return num_renewed


async def _is_taken(asked: Asked) -> bool:
    """Whether there is no embedder, or it has better things to do."""
    return not asked.question.embedder or (asked.is_busy is not None and await asked.is_busy())


async def _vectors(embed: Embed, texts: list[str]) -> list[str | None]:
    """As pgvector reads them; None for a text that this embedder cannot read. OSError while nobody embeds anything."""
    try:
        vectors = await embed(texts)
        if len(vectors) != len(texts) or not all(map(is_usable, vectors)):
            raise ValueError("not every vector can be compared")
    except OSError:
        raise
    except Exception as error:  # whatever the lent callable raises, the other texts can still be read
        if len(texts) > 1:
            return [vector for text in texts for vector in await _vectors(embed, [text])]
        logger.warning("the new embedder cannot read a question; only its exact words find it: %s", error)
        return [None]
    return [vector_text(vector) for vector in vectors]


def _next(tag: str) -> list[_Waiting]:
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"tag": tag, "batch": BATCH})
        return [_Waiting(*row) for row in cursor.fetchall()]


def _store(tag: str, waiting: Sequence[_Waiting], vectors: Sequence[str | None]) -> int:
    values: dict[str, Any] = {
        "tag": tag, "vectors": list(vectors), "ids": [entry.id for entry in waiting],
        "questions": [entry.question for entry in waiting],
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_STORE, values)
        return int(cursor.rowcount)


def _count(tag: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"tag": tag})
        ((count,),) = cursor.fetchall()
    return int(count)
