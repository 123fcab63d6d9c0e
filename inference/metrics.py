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
}
_COUNTERS = {
    "steps": "Steps of the loop.",
    "decode_forwards": "Steps that decoded at least one sequence.",
    "prompt_tokens": "Prompt tokens of accepted requests.",
    "reused_head_tokens": "Prompt tokens taken from the conversation's kept KV.",
    "reused_prefix_tokens": "Prompt tokens taken from other cached KV.",
    "prefilled_tokens": "Prompt tokens that went through the model.",
    "generated_tokens": "Tokens sampled.",
    "preemptions": "Sequences sent back to wait because blocks ran out.",
    "evicted_blocks": "Cached blocks given up for new ones.",
    "cancelled": "Sequences ended before their end.",
    "refused": "Requests refused at the door.",
    "embedded_texts": "Texts embedded.",
    "ledger_fallbacks": "Ledgers and prompts that had to be tokenised from text.",
    "step_seconds_sum": "Seconds spent in steps.",
    "core_restarts": "Cores started again after the first.",
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
