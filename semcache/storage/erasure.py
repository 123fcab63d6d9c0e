"""Erasing: what the cache keeps of somebody's answers goes with the answers, known by their generations.

Stored answers and their vectors, what staff keep of them to compare or to test, look-ups, complaints and seats in
promotions go; checks stay as evidence about a rule, without saying whose answer they judged. The log of look-ups keeps
words that may be everybody's without a generation: there they are found by the stored answers that go, and by the words
themselves. Synchronous, within the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from semcache.quality import promotion
from semcache.storage import store
from semcache.text.normalize import canonical, exact_key

# What others may see too: told by the entries, so before these go.
SHARED_TRACES = (
    """DELETE FROM semcache_cachelook look USING semcache_cacheentry entry
 WHERE entry.generation = ANY(%(generations)s) AND look.scope = entry.scope
   AND look.prompt_sha256 = entry.prompt_sha256""",
    """UPDATE semcache_cachelook look SET neighbour_question = '' FROM semcache_cacheentry entry
 WHERE entry.generation = ANY(%(generations)s) AND look.neighbour = entry.id""",
    "DELETE FROM semcache_cachelook WHERE prompt_sha256 = ANY(%(questions)s) AND question <> ''",
)
TRACES = (
    "DELETE FROM semcache_cachelook WHERE generation = ANY(%(generations)s)",
    "DELETE FROM semcache_cachecomplaint WHERE generations && %(generations)s::uuid[]",
    # After the entries: who begins one of these has locked the entry that it copies.
    "DELETE FROM semcache_cachecomparison WHERE generation = ANY(%(generations)s)",
    "DELETE FROM semcache_cachecase WHERE generation = ANY(%(generations)s)",
    "UPDATE semcache_cachecheck SET generation = NULL WHERE generation = ANY(%(generations)s)",
)


PERSON = (
    "DELETE FROM semcache_cachecomparison WHERE author = %(author)s OR owner = %(owner)s",
    "DELETE FROM semcache_cachecase WHERE owner = %(owner)s",
)


def forget(generations: Sequence[UUID], first_questions: Iterable[str] = ()) -> int:
    """Delete what was kept of these answers; how many stored answers there were."""
    questions = [exact_key(canonical(text), "") for text in first_questions]
    values: dict[str, Any] = {"generations": list(generations), "questions": questions}
    with connection.cursor() as cursor:
        for statement in SHARED_TRACES:
            cursor.execute(statement, values)
        num_entries = promotion.withdraw(generations) + store.delete_made_from(generations)
        for statement in TRACES:
            cursor.execute(statement, values)
    return num_entries


def forget_person(owner: str, author: str) -> None:
    """Delete what staff keep that names somebody as the asker, or that somebody began as staff."""
    with connection.cursor() as cursor:
        for statement in PERSON:
            cursor.execute(statement, {"owner": owner, "author": author})
