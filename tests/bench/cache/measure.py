"""What is measured: look-ups of each kind beside an engine that is idle or busy, inserts, clean-up beside look-ups, and
how the table grows.

Everything goes through the cache's own door. A slow look-up is measured to its end, not cut off by the time budget.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TypeVar

import numpy as np
from django.db import connection
from django.test.utils import override_settings

from semcache import service, tasks
from semcache.models import CacheEntry, CacheRule
from semcache.service import Answer, Outcome
from semcache.storage import shared_index
from tests.bench.cache import table
from tests.bench.cache.engine import NUM_STREAMS, Engine, decoding
from tests.bench.cache.table import Kind

T = TypeVar("T")
RATE_PER_S = 50
NUM_CHURNS = 5
EXPIRED_SHARE = 0.2
# A kind of look-up is measured for no longer than this, twice as long if it has few values by then.
SERIES_S = 12.0
MIN_COUNT = 20
EMBED_BATCH = 50


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


@dataclass(frozen=True, slots=True)
class Way:
    """How a look-up is to end: `accept` is the similarity from which nobody verifies."""

    name: str
    accept: float
    is_alike: bool
    expected: Outcome


EXACT = Way("exact", 0.9, is_alike=False, expected=Outcome.HIT_EXACT)
SEMANTIC = Way("semantic", 0.9, is_alike=True, expected=Outcome.HIT_SEMANTIC)
VERIFIED = Way("verified", 1.0, is_alike=True, expected=Outcome.HIT_SEMANTIC)


class Measurement:
    """All figures of one size, with the engine's own vectors and scores."""

    def __init__(self, num_rows: int, num_lookups: int, engine: Engine, runner: asyncio.Runner) -> None:
        self._num_rows, self._count = num_rows, num_lookups
        self._engine, self._runner = engine, runner
        self._info = runner.run(engine.client.info())
        self._kinds = table.kinds(num_rows, self._info.embedder, self._info.embedding_dim)
        self._numbers = range(num_rows // 2)

    def figures(self, *, with_growth: bool) -> Iterator[Figure]:
        with override_settings(SEMCACHE_BUDGET_MS=60_000):
            self._fill()
            ways = (EXACT, SEMANTIC, VERIFIED) if self._info.verifier else (EXACT, SEMANTIC)
            for is_busy, kind, way in product((False, True), self._kinds, ways):
                yield self._runner.run(self._lookups(kind, way, is_busy=is_busy))
            yield self._runner.run(self._inserts(self._kinds[0]))
            yield self._sweep()
            yield self._eviction()
            if with_growth:
                yield self._growth()

    def _fill(self) -> None:
        """The vector index is built afterwards, as the nightly task does it."""
        table.empty()
        self._fill_rows()
        shared_index.rebuild()
        table.run_long("VACUUM ANALYZE semcache_cacheentry")

    def _fill_rows(self) -> None:
        for kind, vectors in zip(self._kinds, self._real_vectors, strict=True):
            table.fill(kind, self._numbers, vectors)

    @cached_property
    def _real_vectors(self) -> list[np.ndarray]:
        """Of the questions that are asked, for each kind (num_real, dim)."""
        return [self._runner.run(self._embedded(kind)) for kind in self._kinds]

    async def _embedded(self, kind: Kind) -> np.ndarray:
        texts = [kind.question(number).text for number in self._numbers[: table.NUM_REAL]]
        starts = range(0, len(texts), EMBED_BATCH)
        return np.concatenate([await self._embed(texts[start : start + EMBED_BATCH]) for start in starts])

    async def _lookups(self, kind: Kind, way: Way, *, is_busy: bool) -> Figure:
        await CacheRule.objects.filter(name=kind.name).aupdate(
            accept_similarity=way.accept, verify_similarity=0.5
        )
        service.forget_rules()
        async with decoding(self._engine) if is_busy else nullcontext():
            times, hits = await self._series(kind, way)
        what = f"{way.name}, {kind.name}, {f'{NUM_STREAMS} streams' if is_busy else 'idle'}"
        return Figure(self._num_rows, what, times, {"hits %": 100 * hits / len(times)})

    async def _series(self, kind: Kind, way: Way) -> tuple[list[float], int]:
        """The times of look-ups one after the other, and how many ended as they should. The first is for warmth."""
        numbers = random.Random(1).choices(self._numbers[: table.NUM_REAL], k=self._count + 1)
        times, hits, ends_at = [], 0, time.perf_counter() + SERIES_S
        for number in numbers:
            question = kind.question(number, is_alike=way.is_alike)
            decision, took_ms = await _timed(
                service.lookup(question, self._embed, self._engine.client.verify)
            )
            times.append(took_ms)
            hits += len(times) > 1 and decision.outcome is way.expected
            late_s = time.perf_counter() - ends_at
            if len(times) > 1 and late_s > (0 if len(times) > MIN_COUNT else SERIES_S):
                break
        return times[1:], hits

    async def _embed(self, texts: list[str]) -> Sequence[Sequence[float]]:
        return list((await self._engine.client.embed(texts)).vectors)

    async def _at_once(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """Stands for the embedder where its time is not what is measured."""
        return [[1.0] * self._info.embedding_dim for _ in texts]

    async def _inserts(self, kind: Kind) -> Figure:
        times = []
        for number in range(self._num_rows, self._num_rows + self._count):
            question = kind.question(number)
            decision = await service.lookup(question, self._at_once)
            answer = Answer("An answer of the usual length. " * 20, is_complete=True)
            times.append((await _timed(service.remember(decision, question, answer)))[1])
        return Figure(self._num_rows, "insert", times)

    def _sweep(self) -> Figure:
        """Expiry of a fifth of all rows, beside look-ups."""
        table.run_long(
            "UPDATE semcache_cacheentry SET expires_at = created_at + interval '1 second'"
            f" WHERE random() < {EXPIRED_SHARE}"
        )
        return self._runner.run(self._beside_lookups("look-ups while rows expire", tasks.expire_entries))

    def _eviction(self) -> Figure:
        """Least recently used out, a fifth of what is left, beside look-ups."""
        allowed = int(CacheEntry.objects.count() * (1 - EXPIRED_SHARE))
        with override_settings(SEMCACHE_MAX_ENTRIES=allowed, SEMCACHE_MAX_PER_OWNER=10**6):
            work = tasks.enforce_capacity
            return self._runner.run(self._beside_lookups("look-ups while rows are evicted", work))

    async def _beside_lookups(self, what: str, work: Callable[[], int]) -> Figure:
        """Look-ups come at a fixed rate, whatever the clean-up is doing, until it is done; nothing is embedded."""
        chance, lookups = random.Random(2), []
        began = time.perf_counter()
        with ThreadPoolExecutor(1) as worker:
            cleaning = asyncio.wrap_future(worker.submit(_and_close, work))
            while not cleaning.done() or not lookups:
                question = self._kinds[0].question(chance.choice(self._numbers), is_alike=True)
                lookups.append(asyncio.create_task(_timed(service.lookup(question, self._at_once))))
                await asyncio.sleep(1 / RATE_PER_S)
            took_s = time.perf_counter() - began
            deleted = await cleaning
        times = [ms for _, ms in await asyncio.gather(*lookups)]
        return Figure(self._num_rows, what, times, {"deleted rows": deleted, "took s": took_s})

    def _growth(self) -> Figure:
        """All rows replaced again and again, with the vacuum that PostgreSQL would do by itself."""
        self._fill()
        before = table.bytes_of_table()
        for _ in range(NUM_CHURNS):
            table.run_long("DELETE FROM semcache_cacheentry")
            self._fill_rows()
            table.run_long("VACUUM semcache_cacheentry")
        shared_index.rebuild()
        after = table.bytes_of_table()
        names = ("table MB before", "table MB after", "indexes MB before", "indexes MB after")
        sizes = (before[0], after[0], before[1], after[1])
        megabytes = {name: size / 1e6 for name, size in zip(names, sizes, strict=True)}
        return Figure(self._num_rows, f"{NUM_CHURNS} churns", (), megabytes)


async def _timed(awaitable: Awaitable[T]) -> tuple[T, float]:
    began = time.perf_counter()
    result = await awaitable
    return result, (time.perf_counter() - began) * 1000


def _and_close(work: Callable[[], T]) -> T:
    """On another thread: its connection is given back."""
    try:
        return work()
    finally:
        connection.close()
