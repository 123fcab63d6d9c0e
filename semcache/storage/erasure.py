"""Erasing: what the cache keeps of somebody's answers goes with the answers, known by their generations.

Stored answers and their vectors, look-ups, complaints and seats in promotions go; checks stay as evidence about a rule,
without saying whose answer they judged. What stands in a shared scope names nobody and has no generation. Synchronous,
within the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from semcache.quality import promotion
from semcache.storage import store

TRACES = (
    "DELETE FROM semcache_cachelook WHERE generation = ANY(%(generations)s)",
    "DELETE FROM semcache_cachecomplaint WHERE generations && %(generations)s::uuid[]",
    "UPDATE semcache_cachecheck SET generation = NULL WHERE generation = ANY(%(generations)s)",
)


def forget(generations: Sequence[UUID]) -> int:
    """Delete what was kept of these answers; how many stored answers there were."""
    num_entries = promotion.withdraw(generations) + store.delete_made_from(generations)
    with connection.cursor() as cursor:
        for statement in TRACES:
            cursor.execute(statement, {"generations": list(generations)})
    return num_entries
