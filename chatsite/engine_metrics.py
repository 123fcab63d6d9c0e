"""The engine's counters and gauges under our names, for one scrape.

Knows the fields of `EngineStats`; of one that does not answer there is `rill_engine_up 0` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from inference.types import EngineStats

GAUGES = {
    "running": ("rill_running_batch", "Sequences in the running batch."),
    "waiting": ("rill_queue_length", "Requests in the engine's queue."),
    "waiting_tokens": ("rill_queue_tokens", "Prompt tokens in the engine's queue."),
    "live_logs": ("rill_live_logs", "Event logs the front keeps."),
    "waiting_offline": ("rill_queue_offline", "Requests of the offline class in the engine's queue."),
    "device_bytes": (
        "rill_device_bytes",
        "Memory of the device in use; on a CPU that of the core's process.",
    ),
    "kv_budget_bytes": ("rill_kv_budget_bytes", "Memory budget of the KV pool."),
    "kv_committed_bytes": ("rill_kv_committed_bytes", "Memory of the KV slabs in use."),
    "kv_slack": ("rill_kv_slack", "Fraction of token slots in used blocks that hold nothing."),
    "disk_blocks": ("rill_kv_disk_blocks", "KV blocks on disk."),
    "disk_bytes": ("rill_kv_disk_bytes", "Bytes of KV on disk."),
    "prefill_tokens_per_s": ("rill_prefill_rate", "Prefill tokens per second, measured."),
    "restore_bytes_per_s": ("rill_kv_restore_rate", "Bytes per second read back from disk, measured."),
    "step_target_tokens": ("rill_step_prefill_tokens", "Prefill tokens per step the measured time allows."),
}
COUNTERS = {
    "steps": ("rill_steps", "Steps of the engine's loop."),
    "decode_forwards": ("rill_decode_forwards", "Steps that decoded at least one sequence."),
    "step_seconds_sum": ("rill_step_seconds", "Time spent in steps."),
    "prompt_tokens": ("rill_prompt_tokens", "Prompt tokens of accepted requests."),
    "prefilled_tokens": ("rill_prefilled_tokens", "Prompt tokens that went through the model."),
    "generated_tokens": ("rill_generated_tokens", "Tokens the model made."),
    "drafted_tokens": ("rill_drafted_tokens", "Guessed tokens that were tried."),
    "accepted_tokens": ("rill_accepted_tokens", "Of the guessed tokens, those that were right."),
    "preemptions": ("rill_preemptions", "Sequences that lost their blocks to others."),
    "evicted_blocks": ("rill_evicted_blocks", "Kept KV blocks that made room."),
    "cancelled": ("rill_cancelled", "Generations that were cancelled."),
    "refused": ("rill_engine_refused", "Requests the engine refused."),
    "embedded_texts": ("rill_embedded_texts", "Texts that were embedded."),
    "ledger_fallbacks": ("rill_ledger_fallbacks", "Assistant messages that had to be tokenised again."),
    "core_restarts": ("rill_core_restarts", "Times the core was started again."),
    "disk_written_blocks": ("rill_kv_disk_written_blocks", "KV blocks written to disk."),
    "disk_restored_blocks": ("rill_kv_disk_restored_blocks", "KV blocks read back from disk."),
    "disk_refused_blocks": ("rill_kv_disk_refused_blocks", "KV blocks on disk that failed their check."),
    "disk_skipped_blocks": ("rill_kv_disk_skipped_blocks", "KV blocks evicted without being written."),
    "verified_pairs": ("rill_verified_pairs", "Pairs of questions that were compared."),
    "lane_batches": ("rill_lane_batches", "Micro-batches of the embedding and verifier lane."),
    "repetitions": ("rill_repetitions", "Answers ended because they went round in circles."),
    "trimmed_requests": ("rill_trimmed_requests", "Requests whose oldest turns were left out."),
    "canonicalised": ("rill_canonicalised", "Histories prefilled in the form of the next turn."),
    "leak_alarms": ("rill_kv_leak_alarms", "Times the KV blocks did not add up."),
    "device_seconds": (
        "rill_device_seconds",
        "Seconds of forward passes, which answers share by their tokens.",
    ),
    "background_prompt_tokens": (
        "rill_background_prompt_tokens",
        "Of the prompt tokens, those nobody asked for.",
    ),
    "background_reused_tokens": (
        "rill_background_reused_tokens",
        "Of the reused tokens, those nobody asked for.",
    ),
    "background_prefilled_tokens": (
        "rill_background_prefilled_tokens",
        "Of the prefilled tokens, those nobody asked for.",
    ),
    "background_generated_tokens": (
        "rill_background_generated_tokens",
        "Of the generated tokens, those nobody asked for.",
    ),
    "background_device_seconds": (
        "rill_background_device_seconds",
        "Of the device-seconds, those nobody asked for.",
    ),
    "warmed_tokens": ("rill_warmed_tokens", "Tokens read ahead of a question, in full blocks."),
    "warmed_used_tokens": ("rill_warmed_used_tokens", "Of the warmed tokens, those that a question used."),
    "warmed_wasted_tokens": (
        "rill_warmed_wasted_tokens",
        "Of the warmed tokens, those whose blocks went before a question used them.",
    ),
}
# What a family is made of: fields of the stats, and what the family's own labels are for each.
Fields = Mapping[str, tuple[str, ...]]
WAIT_REASONS = ("seats", "blocks")
BLOCK_STATES = {"used": "blocks_used", "cached": "blocks_cached", "free": "blocks_free"}
BLOCK_CLASSES = ("closed", "superseded", "stale", "idle", "active", "shared")
REUSE_KINDS = ("head", "prefix", "shared", "disk")


@dataclass(frozen=True, slots=True)
class Told:
    """What one engine said; `stats` is None when it did not answer, `model` empty while it never did."""

    address: str
    model: str
    stats: EngineStats | None


class EngineMetrics(Collector):
    """One snapshot of every engine. Several are told apart by two labels more, which one alone does not have."""

    def __init__(self, told: Sequence[Told]) -> None:
        self._labels = ("engine", "model") if len(told) > 1 else ()
        self._named = [((one.address, one.model) if self._labels else (), one.stats) for one in told]
        self._answering = [(names, stats) for names, stats in self._named if stats is not None]

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("rill_engine_up", "1 when the engine answered.", labels=self._labels)
        for names, stats in self._named:
            up.add_metric(names, float(stats is not None))
        yield up
        if not self._answering:
            return
        yield self._gauge("rill_engine_ready", "1 when the engine makes tokens.", {"is_ready": ()})
        for field, (name, text) in GAUGES.items():
            yield self._gauge(name, text, {field: ()})
        for field, (name, text) in COUNTERS.items():
            yield self._counter(name, text, {field: ()})
        yield self._gauge("rill_blocks", "KV blocks by state.", _by_value(BLOCK_STATES), "state")
        kinds = {kind: f"reused_{kind}_tokens" for kind in REUSE_KINDS}
        yield self._counter(
            "rill_reused_tokens", "Prompt tokens whose KV was reused, by kind.", _by_value(kinds), "kind"
        )
        reasons = {reason: f"waiting_for_{reason}" for reason in WAIT_REASONS}
        yield self._gauge(
            "rill_queue_held_up",
            "Requests in the queue while this is what it waits for.",
            _by_value(reasons),
            "reason",
        )
        classes = {name: f"blocks_{name}" for name in BLOCK_CLASSES}
        yield self._gauge("rill_kept_blocks", "Kept KV blocks by class.", _by_value(classes), "class")
        overlap = GaugeMetricFamily(
            "rill_prefix_overlap",
            "Share of recent prompts that begin with it.",
            labels=(*self._labels, "prefix"),
        )
        for names, stats in self._answering:
            for prefix in stats.shared_prefixes:
                overlap.add_metric((*names, prefix.name), prefix.overlap)
        yield overlap

    def _gauge(self, name: str, text: str, fields: Fields, *labels: str) -> Metric:
        return self._filled(GaugeMetricFamily(name, text, labels=(*self._labels, *labels)), fields)

    def _counter(self, name: str, text: str, fields: Fields, *labels: str) -> Metric:
        return self._filled(CounterMetricFamily(name, text, labels=(*self._labels, *labels)), fields)

    def _filled(self, family: GaugeMetricFamily | CounterMetricFamily, fields: Fields) -> Metric:
        """With a sample of each field of each engine that answered."""
        for names, stats in self._answering:
            for field, values in fields.items():
                family.add_metric((*names, *values), float(getattr(stats, field)))
        return family


def _by_value(fields: Mapping[str, str]) -> Fields:
    return {field: (value,) for value, field in fields.items()}
