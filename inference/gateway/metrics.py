"""The upstream's own numbers, read from its Prometheus page.

Knows vLLM's names, old and new. What an upstream does not have is zero. Several engines behind one page are added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
KV_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")  # 0 to 1; the second is the older name
HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")  # prompt tokens
PREEMPTIONS = "vllm:num_preemptions_total"
CACHE_CONFIG = "vllm:cache_config_info"
MAX_NUMBER = 2.0**53
_WANTED = (RUNNING, WAITING, *KV_USAGE, *HITS, PREEMPTIONS, CACHE_CONFIG)


@dataclass(frozen=True, slots=True)
class Scrape:
    """One reading of the page."""

    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    hit_tokens: float = 0.0
    preemptions: float = 0.0
    blocks_total: int = 0
    block_tokens: int = 0

    @property
    def blocks_used(self) -> int:
        return round(self.kv_usage * self.blocks_total)


def read(text: str) -> Scrape:
    """Raises ValueError for a page that is none."""
    values: dict[str, list[float]] = {}
    blocks_total = block_tokens = 0
    for sample in _samples(text):
        values.setdefault(sample.name, []).append(_number(sample.value))
        if sample.name == CACHE_CONFIG:
            blocks_total += _whole(sample.labels.get("num_gpu_blocks", ""))
            block_tokens = _whole(sample.labels.get("block_size", "")) or block_tokens
    usage = next((values[name] for name in KV_USAGE if name in values), [])
    hits = next((values[name] for name in HITS if name in values), [])
    return Scrape(
        running=int(sum(values.get(RUNNING, []))),
        waiting=int(sum(values.get(WAITING, []))),
        kv_usage=min(1.0, sum(usage) / len(usage)) if usage else 0.0,
        hit_tokens=sum(hits),
        preemptions=sum(values.get(PREEMPTIONS, [])),
        blocks_total=blocks_total,
        block_tokens=block_tokens,
    )


@dataclass(slots=True)
class Growth:
    """How much a foreign counter has grown since it was first seen, also over restarts of its owner."""

    total: float = 0.0
    _last: float | None = field(default=None)

    def see(self, value: float) -> None:
        if self._last is not None:
            self.total += value - self._last if value >= self._last else value
        self._last = value


def _samples(text: str) -> Iterator[Sample]:
    """Only lines that we use are parsed: a page has thousands, and this runs beside the streams."""
    lines = [line for line in text.splitlines() if line.startswith(_WANTED)]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        yield from family.samples


def _number(value: float) -> float:
    if not 0 <= value < MAX_NUMBER:
        raise ValueError(f"{value} is no number of requests, tokens or blocks")
    return value


def _whole(label: str) -> int:
    return int(_number(int(label))) if label.isdecimal() else 0
