"""GPTCache as its `init_similar_cache` sets it up: SQLite, faiss, the distance as evaluation. The vectors are ours.

Its other evaluations need model weights from a hub and are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from gptcache import Cache, Config
from gptcache.adapter.api import get, init_similar_cache
from gptcache.manager import CacheBase, VectorBase, get_data_manager

from semcache.evaluation.peers.found import Found, Vector

MOST_STORED = 100_000


class GPTCachePeer:
    name = f"GPTCache {version('gptcache')}"
    threshold = Config().similarity_threshold

    def __init__(self, folder: Path, dimension: int) -> None:
        self.dimension = dimension  # read by GPTCache
        self._folder = folder
        self._num_stores = 0
        self._begin_anew()

    def fill(self, texts: Sequence[str], vectors: Iterable[Vector]) -> None:
        # Deleting one question is faster than a new store, deleting thousands is much slower.
        if len(texts) == 1:
            self._forget()
        else:
            self._begin_anew()
        arrays = [np.asarray(vector, dtype=np.float32) for vector in vectors]
        answers = [str(place) for place in range(len(texts))]
        self._store.import_data(list(texts), answers, arrays, [None] * len(texts))

    def _begin_anew(self) -> None:
        self._num_stores += 1
        self._store = get_data_manager(
            CacheBase("sqlite", sql_url="sqlite://"),
            VectorBase(
                "faiss", dimension=self.dimension, index_path=str(self._folder / f"{self._num_stores}.faiss")
            ),
            max_size=MOST_STORED,  # as shipped it forgets all but 1,000
        )
        self._shipped, self._open = self._cache(self.threshold), self._cache(0.0)

    def _forget(self) -> None:
        """As its own eviction deletes."""
        ids = self._store.s.get_ids(deleted=False)
        if ids:
            self._store.s.mark_deleted(ids)
            self._store.s.clear_deleted_data()
            self._store.v.delete(ids)

    def ask(self, text: str, vector: Vector) -> Found:
        self._vector = np.asarray(vector, dtype=np.float32)
        seen: list[tuple[Any, float]] = []
        answer = get(text, cache_obj=self._open, hit_callback=seen.extend)
        if answer is None:
            return Found()
        return Found(int(answer), float(seen[0][1]), get(text, cache_obj=self._shipped) is not None)

    def to_embeddings(self, text: str, **_: Any) -> np.ndarray:
        """Called by GPTCache for the question that is being asked."""
        return self._vector

    def _cache(self, threshold: float) -> Cache:
        cache = Cache()
        # Reports would go to a server outside.
        config = Config(similarity_threshold=threshold, disable_report=True)
        init_similar_cache(cache_obj=cache, embedding=self, data_manager=self._store, config=config)
        return cache
