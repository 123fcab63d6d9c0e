"""What is measured: look-ups of each kind, inserts, clean-up beside look-ups, and how the table grows.

Everything goes through the cache's own door. The embedder and the verifier answer at once, so the times are the cache's
own and the database's; a model's time comes on top.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import connection
from django.test.utils import override_settings

from semcache import service, shared_index, tasks
from semcache.models import CacheEntry, CacheRule
from semcache.service import Answer, Decision, Outcome
from tests.bench.cache import table
from tests.bench.cache.table import Kind

T = TypeVar("T")
RATE_PER_S = 50
NUM_CHURNS = 5
EXPIRED_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; times in milliseconds. `facts` are other numbers, by name and unit."""

    rows: int
    what: str
    times_ms: Sequence[float] = ()
    facts: dict[str, float] = field(default_factory=dict)

    def quantile(self, share: float) -> float:
        ordered = sorted(self.times_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(num_rows: int, num_lookups: int, *, with_growth: bool) -> Iterator[Figure]:
    """All figures of one size. A slow look-up is measured to its end, not cut off by the time budget."""
    with override_settings(SEMCACHE_BUDGET_MS=60_000):
        kinds, numbers = _filled(num_rows)
        for kind in kinds:
            yield from asyncio.run(_lookups(num_rows, kind, numbers, num_lookups))
        yield asyncio.run(_inserts(num_rows, kinds[0], num_lookups))
        yield _sweep(num_rows, kinds[0], numbers)
        yield _eviction(num_rows, kinds[0], numbers)
        if with_growth:
            yield _growth(num_rows, kinds, numbers)


def _filled(num_rows: int) -> tuple[tuple[Kind, Kind], range]:
    kinds, numbers = table.kinds(num_rows), range(num_rows // 2)
    table.empty()
    for kind in kinds:
        table.fill(kind, numbers)
    shared_index.rebuild()
    table.run_long("VACUUM ANALYZE semcache_cacheentry")
    return kinds, numbers


async def _lookups(num_rows: int, kind: Kind, numbers: range, count: int) -> list[Figure]:
    chosen = random.Random(1).choices(numbers, k=count)
    known = await asyncio.to_thread(_and_close, table.vectors, kind, set(chosen))

    async def ask(number: int, *, is_alike: bool) -> Decision:
        return await service.lookup(
            kind.question(number, is_alike=is_alike), _giving(known[number]), _agreeing
        )

    figures = []
    for what, accept, is_alike, expected in (
        ("exact", 0.95, False, Outcome.HIT_EXACT),
        ("semantic", 0.95, True, Outcome.HIT_SEMANTIC),
        ("verified", 1.0, True, Outcome.HIT_SEMANTIC),
    ):
        await CacheRule.objects.filter(name=kind.name).aupdate(
            accept_similarity=accept, verify_similarity=0.5
        )
        service.forget_rules()
        await ask(chosen[0], is_alike=is_alike)
        timed = [await _timed(ask(number, is_alike=is_alike)) for number in chosen]
        hits = sum(decision.outcome is expected for decision, _ in timed)
        figures.append(
            Figure(num_rows, f"{what}, {kind.name}", [ms for _, ms in timed], {"hits %": 100 * hits / count})
        )
    return figures


async def _inserts(num_rows: int, kind: Kind, count: int) -> Figure:
    times = []
    for number in range(num_rows, num_rows + count):
        question = kind.question(number)
        decision = await service.lookup(question, _giving([1.0] * table.DIM))
        answer = Answer("An answer of the usual length. " * 20, is_complete=True)
        times.append((await _timed(service.remember(decision, question, answer)))[1])
    return Figure(num_rows, "insert", times)


def _sweep(num_rows: int, kind: Kind, numbers: range) -> Figure:
    """Expiry of a fifth of all rows, beside look-ups."""
    table.run_long(
        "UPDATE semcache_cacheentry SET expires_at = created_at + interval '1 second'"
        f" WHERE random() < {EXPIRED_SHARE}"
    )
    return asyncio.run(
        _beside_lookups(num_rows, "look-ups while rows expire", kind, numbers, tasks.expire_entries)
    )


def _eviction(num_rows: int, kind: Kind, numbers: range) -> Figure:
    """Least recently used out, a fifth of what is left, beside look-ups."""
    allowed = int(CacheEntry.objects.count() * (1 - EXPIRED_SHARE))
    with override_settings(SEMCACHE_MAX_ENTRIES=allowed, SEMCACHE_MAX_PER_OWNER=10**6):
        work = tasks.enforce_capacity
        return asyncio.run(_beside_lookups(num_rows, "look-ups while rows are evicted", kind, numbers, work))


async def _beside_lookups(
    num_rows: int, what: str, kind: Kind, numbers: range, work: Callable[[], int]
) -> Figure:
    """Look-ups come at a fixed rate, whatever the clean-up is doing, until it is done."""
    chance, lookups = random.Random(2), []
    began = time.perf_counter()
    with ThreadPoolExecutor(1) as worker:
        cleaning = asyncio.wrap_future(worker.submit(_and_close, work))
        while not cleaning.done() or not lookups:
            question = kind.question(chance.choice(numbers), is_alike=True)
            lookups.append(asyncio.create_task(_timed(service.lookup(question, _giving([1.0] * table.DIM)))))
            await asyncio.sleep(1 / RATE_PER_S)
        took_s = time.perf_counter() - began
        deleted = await cleaning
    times = [ms for _, ms in await asyncio.gather(*lookups)]
    return Figure(num_rows, what, times, {"deleted rows": deleted, "took s": took_s})


def _growth(num_rows: int, kinds: Sequence[Kind], numbers: range) -> Figure:
    """All rows replaced again and again, with the vacuum that PostgreSQL would do by itself."""
    _filled(num_rows)
    before = table.bytes_of_table()
    for _ in range(NUM_CHURNS):
        table.run_long("DELETE FROM semcache_cacheentry")
        for kind in kinds:
            table.fill(kind, numbers)
        table.run_long("VACUUM semcache_cacheentry")
    shared_index.rebuild()
    after = table.bytes_of_table()
    names = ("table MB before", "table MB after", "indexes MB before", "indexes MB after")
    sizes = (before[0], after[0], before[1], after[1])
    return Figure(
        num_rows, f"{NUM_CHURNS} churns", (), {n: s / 1e6 for n, s in zip(names, sizes, strict=True)}
    )


async def _timed(awaitable: Awaitable[T]) -> tuple[T, float]:
    began = time.perf_counter()
    result = await awaitable
    return result, (time.perf_counter() - began) * 1000


def _giving(vector: Sequence[float]) -> service.Embed:
    async def embed(texts: list[str]) -> Sequence[Sequence[float]]:
        return [vector] * len(texts)

    return embed


async def _agreeing(pairs: list[tuple[str, str]]) -> Sequence[float]:
    return [1.0] * len(pairs)


def _and_close(work: Callable[..., T], *args: object) -> T:
    """On another thread: its connection is given back."""
    try:
        return work(*args)
    finally:
        connection.close()
