"""The engine's own Prometheus page, on loopback, for those who scrape the engine beside the web process.

Knows the names of metrics. Numbers are those of `stats()`; histograms of single answers are the web's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from inference.types import EngineStats

PREFIX = "rill_engine_"
_GAUGES = {
    "running": "Sequences in the batch.",
    "waiting": "Sequences that wait for a place in the batch.",
    "waiting_tokens": "Prompt tokens that wait.",
    "blocks_total": "KV blocks of the pool.",
    "blocks_used": "KV blocks of running sequences.",
    "blocks_cached": "KV blocks kept for reuse.",
    "blocks_free": "KV blocks that hold nothing.",
    "live_logs": "Generations that can be attached to.",
    "waiting_offline": "Sequences of the offline class that wait.",
    "blocks_closed": "Cached blocks of closed or deleted conversations.",
    "blocks_superseded": "Cached blocks of branches that were left.",
    "blocks_stale": "Cached blocks that nobody used within the soft TTL.",
    "blocks_idle": "Cached blocks of idle conversations.",
    "blocks_active": "Cached blocks of conversations between two turns.",
    "blocks_shared": "Cached blocks of the operator's shared prefixes.",
    "kv_budget_bytes": "Memory budget of the KV pool.",
    "kv_committed_bytes": "Memory of the slabs in use.",
    "kv_slack": "Fraction of token slots in used blocks that hold nothing.",
    "disk_blocks": "KV blocks on disk.",
    "disk_bytes": "Bytes of KV on disk.",
    "prefill_tokens_per_s": "Measured prefill rate.",
    "restore_bytes_per_s": "Measured rate of reading KV back from disk.",
    "waiting_for_seats": "Sequences that wait for a place in the batch.",
    "waiting_for_blocks": "Sequences that wait because the first of them does not fit into the KV pool.",
    "device_bytes": "Memory of the device in use; on a CPU that of the core's process.",
    "step_target_tokens": "Prefill tokens per step that the measured step time allows.",
}
_COUNTERS = {
    "steps": "Steps of the loop.",
    "decode_forwards": "Steps that decoded at least one sequence.",
    "prompt_tokens": "Prompt tokens of accepted requests.",
    "reused_head_tokens": "Prompt tokens taken from the conversation's kept KV.",
    "reused_prefix_tokens": "Prompt tokens taken from other cached KV.",
    "prefilled_tokens": "Prompt tokens that went through the model.",
    "generated_tokens": "Tokens sampled, end tokens and those after a stop string included.",
    "preemptions": "Sequences sent back to wait because blocks ran out.",
    "evicted_blocks": "Cached blocks given up for new ones.",
    "cancelled": "Sequences ended before their end.",
    "refused": "Requests refused at the door.",
    "embedded_texts": "Texts embedded.",
    "ledger_fallbacks": "Ledgers and prompts that had to be tokenised from text.",
    "step_seconds_sum": "Seconds spent in steps.",
    "core_restarts": "Cores started again after the first.",
    "reused_shared_tokens": "Prompt tokens taken from a shared prefix.",
    "reused_disk_tokens": "Prompt tokens whose KV was read back from disk.",
    "disk_written_blocks": "KV blocks written to disk.",
    "disk_restored_blocks": "KV blocks read back from disk.",
    "disk_refused_blocks": "KV blocks on disk with a wrong checksum or fingerprint.",
    "disk_skipped_blocks": "KV blocks evicted without being written: the writer was behind.",
    "verified_pairs": "Pairs of questions compared by the verifier.",
    "lane_batches": "Micro-batches of the embedding and verifier lane.",
    "repetitions": "Answers ended because they went round in circles.",
    "trimmed_requests": "Requests whose oldest turns were left out to fit the window.",
    "canonicalised": "Histories prefilled in idle time in the form of the next turn.",
    "leak_alarms": "Times the KV blocks did not add up.",
    "device_seconds": "Seconds of forward passes, which sequences share by their tokens.",
    "background_prompt_tokens": "Of prompt_tokens, those of probes and of prefills ahead of a question.",
    "background_reused_tokens": "Of the reused tokens, those of such background work.",
    "background_prefilled_tokens": "Of prefilled_tokens, those of such background work.",
    "background_generated_tokens": "Of generated_tokens, those of such background work.",
    "background_device_seconds": "Of device_seconds, those of such background work.",
    "warmed_tokens": "Tokens read ahead of a question, in full blocks.",
    "warmed_used_tokens": "Of warmed_tokens, those that a question used.",
    "warmed_wasted_tokens": "Of warmed_tokens, those whose blocks went before a question used them.",
    "drafted_tokens": "Guessed tokens that were tried in steps of running answers.",
    "accepted_tokens": "Of drafted_tokens, those that were right.",
}
_PREFIX_GAUGES = {
    "overlap": "Share of recent prompts that begin with the declared prefix.",
    "num_tokens": "Tokens of the declared prefix.",
    "is_shared": "1 while users share the KV of the declared prefix.",
}


class EngineCollector(Collector):
    def __init__(self, stats: Callable[[], EngineStats]) -> None:
        self._stats = stats

    def collect(self) -> Iterable[Metric]:
        stats = self._stats()
        yield GaugeMetricFamily(f"{PREFIX}ready", "1 when a token was produced lately.", value=stats.is_ready)
        for name, text in _GAUGES.items():
            yield GaugeMetricFamily(PREFIX + name, text, value=getattr(stats, name))
        for name, text in _COUNTERS.items():
            yield CounterMetricFamily(PREFIX + name, text, value=getattr(stats, name))
        for name, text in _PREFIX_GAUGES.items():
            family = GaugeMetricFamily(f"{PREFIX}shared_prefix_{name}", text, labels=("prefix",))
            for prefix in stats.shared_prefixes:
                family.add_metric((prefix.name,), float(getattr(prefix, name)))
            yield family


def serve_metrics(stats: Callable[[], EngineStats], port: int) -> Callable[[], None]:
    """Serves on 127.0.0.1; the result stops it. Raises OSError when the port is taken."""
    registry = CollectorRegistry()
    registry.register(EngineCollector(stats))
    server, thread = start_http_server(port, addr="127.0.0.1", registry=registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
