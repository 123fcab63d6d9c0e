"""The vector index over shared entries: only where there are many, one per vector size, rebuilt at night.

Inside one scope an exact scan is faster than an index and loses nothing (measured up to ten thousand rows), and
deleting under HNSW is dear: VACUUM after a fifth of 100,000 rows took 307 s, a rebuild 36 s. So private entries stay
out of the index, and what was deleted is cleared away by the rebuild. The planner chooses by the size of a scope. An
index over very many rows holds halved numbers: half the memory for the same answers.
Synchronous, for workers, outside of transactions. Knows rows and sizes, no rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

NAME = "entry_shared_meaning"
# Fewer shared rows than this are scanned within milliseconds even if they all lie in one scope.
MIN_ROWS = 5000
# More shared rows than this are indexed by numbers of half the size: at 100,000 vectors of 384 numbers an index is
# 112 MB instead of 195, which is what has to stay in memory. Below, whole numbers are as quick and cost no conversion.
MAX_VECTOR_ROWS = 100_000
# pgvector indexes no more; what could never be indexed is not taken.
MAX_DIM = 2000
# Any number that nobody else uses as an advisory lock in this database.
REBUILD_LOCK = 0x5E3C_1DE7
# A build takes as long as it takes; the limit of a task ends one that hangs.
BUILD_SETTINGS = ("SET statement_timeout = 0", "SET maintenance_work_mem = '256MB'")
AS_BEFORE = ("RESET statement_timeout", "RESET maintenance_work_mem")

SIZES = """
SELECT vector_dims(embedding), count(*) FROM semcache_cacheentry
 WHERE sharing = 'public' AND embedding IS NOT NULL GROUP BY 1"""
INDEXES = """
SELECT relation.relname FROM pg_index JOIN pg_class relation ON relation.oid = pg_index.indexrelid
 WHERE pg_index.indrelid = 'semcache_cacheentry'::regclass
   AND relation.relname LIKE %(pattern)s AND pg_index.indisvalid = %(is_valid)s
 ORDER BY relation.relname"""
CREATE = """
CREATE INDEX CONCURRENTLY {name} ON semcache_cacheentry USING hnsw ((embedding::{type}({dim})) {type}_cosine_ops)
 WHERE sharing = 'public' AND vector_dims(embedding) = {dim}"""
# Else the planner takes one row in 200 for one of the right size, and reads a whole index in its order.
STATISTICS = """
CREATE STATISTICS IF NOT EXISTS entry_vector_size ON (vector_dims(embedding)) FROM semcache_cacheentry"""
ANALYZE = "ANALYZE semcache_cacheentry"


def name_of(dim: int) -> str:
    return f"{NAME}_{dim}"


def half_name_of(dim: int) -> str:
    return f"{NAME}_{dim}_half"


def rebuild() -> list[str]:
    """Bring the indexes in line with the rows; the names of those that were built, [] while another worker does it.

    Killed in the middle it leaves an index that nobody uses; the next run takes it away first.
    """
    with _alone() as is_first:
        if not is_first:
            return []
        for name in _indexes(is_valid=False):
            _execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        wanted, present = _wanted(), set(_indexes(is_valid=True))
        for name, create in wanted.items():
            _execute(f"REINDEX INDEX CONCURRENTLY {name}" if name in present else create)
        # Only now: an index of the other kind served until its successor was whole.
        for name in present - set(wanted):
            _execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        if wanted:
            _execute(STATISTICS)
            _execute(ANALYZE)
        return sorted(wanted)


def _wanted() -> dict[str, str]:
    """The names of the indexes for vector sizes of which there are enough shared rows, and how each is made."""
    wanted = {}
    for dim, count in _rows(SIZES):
        if count < MIN_ROWS or dim > MAX_DIM:
            continue
        is_half = count > MAX_VECTOR_ROWS
        name, kind = (half_name_of(dim), "halfvec") if is_half else (name_of(dim), "vector")
        wanted[name] = CREATE.format(name=name, dim=dim, type=kind)
    return wanted


def _indexes(*, is_valid: bool) -> list[str]:
    """Ours, also the half-built ones that a killed rebuild leaves under a name of PostgreSQL's."""
    names = [name for (name,) in _rows(INDEXES, {"pattern": f"{NAME}%", "is_valid": is_valid})]
    return [name for name in names if re.fullmatch(rf"{NAME}_\d+(_half)?(_cc(new|old)\d*)?", name)]


@contextmanager
def _alone() -> Iterator[bool]:
    """True for one worker at a time. The lock is the connection's own, so it ends with a killed worker."""
    ((is_first,),) = _rows("SELECT pg_try_advisory_lock(%(lock)s)", {"lock": REBUILD_LOCK})
    try:
        if is_first:
            for sql in BUILD_SETTINGS:
                _execute(sql)
        yield bool(is_first)
    finally:
        if is_first:
            for sql in AS_BEFORE:
                _execute(sql)
            _rows("SELECT pg_advisory_unlock(%(lock)s)", {"lock": REBUILD_LOCK})


def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def _rows(sql: str, values: dict[str, Any] | None = None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
