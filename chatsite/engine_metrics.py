"""The engine's counters and gauges under our names, for one scrape.

Knows the fields of `EngineStats`; an engine that does not answer is `rill_engine_up 0` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from inference.types import EngineStats

GAUGES = {
    "running": ("rill_running_batch", "Sequences in the running batch."),
    "waiting": ("rill_queue_length", "Requests in the engine's queue."),
    "waiting_tokens": ("rill_queue_tokens", "Prompt tokens in the engine's queue."),
    "live_logs": ("rill_live_logs", "Event logs the front keeps."),
}
COUNTERS = {
    "steps": ("rill_steps", "Steps of the engine's loop."),
    "decode_forwards": ("rill_decode_forwards", "Steps that decoded at least one sequence."),
    "step_seconds_sum": ("rill_step_seconds", "Time spent in steps."),
    "prompt_tokens": ("rill_prompt_tokens", "Prompt tokens of accepted requests."),
    "prefilled_tokens": ("rill_prefilled_tokens", "Prompt tokens that went through the model."),
    "generated_tokens": ("rill_generated_tokens", "Tokens the model made."),
    "preemptions": ("rill_preemptions", "Sequences that lost their blocks to others."),
    "evicted_blocks": ("rill_evicted_blocks", "Kept KV blocks that made room."),
    "cancelled": ("rill_cancelled", "Generations that were cancelled."),
    "refused": ("rill_engine_refused", "Requests the engine refused."),
    "embedded_texts": ("rill_embedded_texts", "Texts that were embedded."),
    "ledger_fallbacks": ("rill_ledger_fallbacks", "Assistant messages that had to be tokenised again."),
    "core_restarts": ("rill_core_restarts", "Times the core was started again."),
}
BLOCK_STATES = {"used": "blocks_used", "cached": "blocks_cached", "free": "blocks_free"}
REUSE_KINDS = {"head": "reused_head_tokens", "prefix": "reused_prefix_tokens"}


class EngineMetrics(Collector):
    """One snapshot of the engine; `stats` is None when it did not answer."""

    def __init__(self, stats: EngineStats | None) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats
        yield GaugeMetricFamily(
            "rill_engine_up", "1 when the engine answered.", value=float(stats is not None)
        )
        if stats is None:
            return
        yield GaugeMetricFamily(
            "rill_engine_ready", "1 when the engine makes tokens.", value=float(stats.is_ready)
        )
        for field, (name, text) in GAUGES.items():
            yield GaugeMetricFamily(name, text, value=float(getattr(stats, field)))
        for field, (name, text) in COUNTERS.items():
            yield CounterMetricFamily(name, text, value=float(getattr(stats, field)))
        blocks = GaugeMetricFamily("rill_blocks", "KV blocks by state.", labels=("state",))
        for state, field in BLOCK_STATES.items():
            blocks.add_metric((state,), float(getattr(stats, field)))
        yield blocks
        reused = CounterMetricFamily(
            "rill_reused_tokens", "Prompt tokens whose KV was reused, by kind.", labels=("kind",)
        )
        for kind, field in REUSE_KINDS.items():
            reused.add_metric((kind,), float(getattr(stats, field)))
        yield reused
