"""Hits, counted in memory and written to the side table in batches: a hit costs no write of its own.

A crash loses only which entries were used last. Knows ids and counts; when to write is decided here, where
(on which thread) by the caller.
"""

from __future__ import annotations

import threading
from collections import Counter

from django.db import connection

FLUSH_AFTER_S = 2.0
FLUSH_AT_HITS = 200

# In id order, so that two processes that flush at once never wait for each other in a circle. Entries that somebody
# holds are being deleted: waiting for them while holding their neighbours' use would close a circle with the deleter,
# who takes entries first and their use second.
FLUSH = """
WITH living AS MATERIALIZED (
     SELECT id FROM semcache_cacheentry WHERE id = ANY(%(ids)s) ORDER BY id FOR KEY SHARE SKIP LOCKED)
INSERT INTO semcache_cacheentryuse AS used (entry_id, last_used_at, hits)
SELECT hit.entry_id, statement_timestamp(), hit.hits
  FROM unnest(%(ids)s::bigint[], %(hits)s::bigint[]) AS hit (entry_id, hits)
  JOIN living ON living.id = hit.entry_id
 ORDER BY hit.entry_id
    ON CONFLICT (entry_id) DO UPDATE SET hits = used.hits + excluded.hits, last_used_at = excluded.last_used_at"""


class HitCounter:
    """Safe to use from the event loop and from database threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hits: Counter[int] = Counter()

    def add(self, entry_id: int) -> bool:
        """Count one hit; True when it just filled a batch, which should be written now."""
        with self._lock:
            self._hits[entry_id] += 1
            return self._hits.total() == FLUSH_AT_HITS

    def flush(self) -> int:
        """Write what was counted; the number of entries. When the write fails the counts stay for the next one."""
        with self._lock:
            hits, self._hits = self._hits, Counter()
        if not hits:
            return 0
        ids = sorted(hits)
        try:
            with connection.cursor() as cursor:
                cursor.execute(FLUSH, {"ids": ids, "hits": [hits[entry_id] for entry_id in ids]})
        except Exception:
            with self._lock:
                self._hits.update(hits)
            raise
        return len(ids)
