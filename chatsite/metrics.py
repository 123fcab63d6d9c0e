"""The numbers of this process, and how they are written for Prometheus.

Every label takes its values from a fixed set, so the number of series has a bound. The engine counts for itself; its
numbers are read at scrape time (`chatsite.engine_metrics`). Knows no transport and no database.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.registry import Collector

from chatsite.chat.events import Ended

SECONDS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 30.0, 60.0)
SECONDS_PER_TOKEN = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0)
DOORS = frozenset({"socket", "api", "v1", "worker"})
CACHE_OUTCOMES = frozenset({"hit-exact", "hit-semantic", "stale-exact", "stale-semantic", "miss", "bypass"})
REFUSALS = frozenset(
    {
        "rate_limited", "quota_exceeded", "queue_full", "engine_unavailable", "model_loading", "invalid_request",
        "unauthenticated", "context_length_exceeded", "not_cached", "not_found", "draining",
    }
)  # fmt: skip

disable_created_metrics()  # a second series per counter, which nobody asks for

registry = CollectorRegistry()
ProcessCollector(registry=registry)

_replies = Counter(
    "rill_replies",
    "Answers that ended, by door, final state and origin.",
    ("door", "state", "origin"),
    registry=registry,
)
_ttft = Histogram(
    "rill_ttft_seconds", "From acceptance to the first text.", ("origin",), buckets=SECONDS, registry=registry
)
_tpot = Histogram(
    "rill_tpot_seconds",
    "Decode time per token after the first.",
    buckets=SECONDS_PER_TOKEN,
    registry=registry,
)
_queue = Histogram("rill_queue_seconds", "Time in the engine's queue.", buckets=SECONDS, registry=registry)
_generated = Counter("rill_reply_generated_tokens", "Tokens the model made for answers.", registry=registry)
_reused = Counter("rill_reply_reused_tokens", "Prompt tokens whose KV was reused.", registry=registry)
_lookups = Counter(
    "rill_cache_lookups", "Semantic cache look-ups by outcome.", ("outcome",), registry=registry
)
_refusals = Counter("rill_refusals", "Requests that were refused, by code.", ("code",), registry=registry)
live_replies = Gauge("rill_live_replies", "Answers this process is making.", registry=registry)
open_sockets = Gauge("rill_open_sockets", "Open WebSockets.", registry=registry)


def observe_reply(ended: Ended, *, door: str) -> None:
    """Counts one finished answer; called once per `Ended`."""
    _replies.labels(_known(door, DOORS), ended.state.value, ended.origin.value).inc()
    durations, counts = ended.durations, ended.counts
    if durations.ttft_ms > 0:
        _ttft.labels(ended.origin.value).observe(durations.ttft_ms / 1000)
    if ended.origin.value != "model":
        return
    _queue.observe(durations.queue_ms / 1000)
    if counts.generated_tokens > 1:
        _tpot.observe(durations.decode_ms / 1000 / (counts.generated_tokens - 1))
    _generated.inc(counts.generated_tokens)
    _reused.inc(counts.reused_tokens)


def observe_lookup(outcome: str) -> None:
    """Counts one look-up of the semantic cache: hit-..., stale-..., miss or bypass."""
    _lookups.labels(_known(outcome, CACHE_OUTCOMES)).inc()


def observe_refusal(code: str) -> None:
    """Counts one request that was refused before it was accepted."""
    _refusals.labels(_known(code, REFUSALS)).inc()


def render(engine: Collector) -> bytes:
    """This process's numbers and the engine's, in Prometheus' text format."""
    scrape = CollectorRegistry(auto_describe=False)
    scrape.register(engine)
    return bytes(generate_latest(registry) + generate_latest(scrape))


def _known(value: str, allowed: frozenset[str]) -> str:
    return value if value in allowed else "other"
