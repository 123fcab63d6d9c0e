"""The claims by name, in the order in which the page shows them."""

from __future__ import annotations

from collections.abc import Callable

from tests.bench.claims import (
    batch_curve,
    batching,
    bookkeeping,
    dynamic_batches,
    kv_cache,
    memory,
    multi_turn,
    shared_prompt,
)
from tests.bench.claims.findings import Finding
from tests.bench.claims.rig import Rig

CLAIMS: dict[str, Callable[[Rig], Finding]] = {
    "kv-cache": kv_cache.measure,
    "batching": batching.measure,
    "batch-curve": batch_curve.measure,
    "dynamic-batches": dynamic_batches.measure,
    "shared-prompt": shared_prompt.measure,
    "multi-turn": multi_turn.measure,
    "bookkeeping": bookkeeping.measure,
    "memory": memory.measure,
}
