"""The upstream's numbers under our names."""

from __future__ import annotations

import pytest

from inference.gateway.counters import Counters
from inference.gateway.metrics import Growth, Scrape, read
from inference.testing.upstream import BLOCKS_TOTAL, Behaviour
from tests.inference.gateway.driver import admit_of, both, scripted

PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 1.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:kv_cache_usage_perc{engine="1"} 0.25
vllm:prefix_cache_queries_total{engine="0"} 100.0
vllm:prefix_cache_hits_total{engine="0"} 40.0
vllm:num_preemptions_total{engine="0"} 7.0
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="500"} 1.0
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="500"} 1.0
vllm:time_to_first_token_seconds_bucket{le="0.1"} 7
"""


def test_a_page_is_read_over_all_engines_and_lookalikes_are_not_counted() -> None:
    scrape = read(PAGE)
    assert (scrape.running, scrape.waiting, scrape.hit_tokens, scrape.preemptions) == (4, 2, 40, 7)
    assert (scrape.blocks_total, scrape.blocks_used, scrape.block_tokens) == (1000, 375, 16)


def test_old_names_are_known() -> None:
    scrape = read("vllm:gpu_cache_usage_perc 0.5\nvllm:gpu_prefix_cache_hits_total 8\n")
    assert (scrape.kv_usage, scrape.hit_tokens) == (0.5, 8)


def test_what_is_absent_is_zero() -> None:
    assert read("llamacpp:requests_processing 3\n") == Scrape()
    assert read('vllm:cache_config_info{num_gpu_blocks="None"} 1\n').blocks_total == 0


@pytest.mark.parametrize(
    "line",
    [
        "vllm:num_requests_running +Inf", "vllm:num_requests_running NaN", "vllm:num_requests_running -1",
        "vllm:num_requests_waiting 1e300", "vllm:kv_cache_usage_perc NaN", "vllm:num_requests_running{",
        'vllm:cache_config_info{num_gpu_blocks="99999999999999999999"} 1',
    ],
)  # fmt: skip
def test_a_page_with_impossible_numbers_is_none(line: str) -> None:
    """The one kind of error that the scraping task expects; any other would end the core."""
    with pytest.raises(ValueError, match=r"."):
        read(line + "\n")


def test_a_foreign_counter_counts_from_when_it_was_first_seen_and_over_restarts() -> None:
    growth = Growth()
    for value in (100, 130, 5, 6):
        growth.see(value)
    assert growth.total == 30 + 5 + 1


def test_reuse_is_taken_from_the_page_only_where_answers_do_not_tell() -> None:
    counters = Counters()
    counters.on_scrape(Scrape(hit_tokens=1000))
    counters.on_scrape(Scrape(hit_tokens=1050))
    counters.on_finished(prompt_tokens=80, cached_tokens=None)
    assert counters.stats(running=0, waiting=0, waiting_tokens=0).reused_prefix_tokens == 50
    counters.on_finished(prompt_tokens=80, cached_tokens=64)
    assert counters.stats(running=0, waiting=0, waiting_tokens=0).reused_prefix_tokens == 64


async def test_the_page_is_told_to_the_front() -> None:
    async with both() as (front, upstream):
        assert front.ready is not None
        assert (front.ready.blocks_total, front.ready.block_tokens) == (BLOCKS_TOTAL, 16)
        await front.until(lambda: front.packs)
        upstream.num_preemptions = 3
        await front.send(scripted("a", tokens=3))
        await front.until(lambda: front.packs[-1].stats.preemptions == 3)
        assert front.packs[-1].stats.blocks_free == BLOCKS_TOTAL


async def test_without_a_page_our_own_numbers_are_told() -> None:
    async with both(Behaviour(has_metrics=False)) as (front, _upstream):
        await front.send(scripted("a", hang_after=0), admit_of("b"))
        await front.end("b")
        stats = front.packs[-1].stats
        assert (stats.blocks_total, stats.preemptions) == (0, 0)
        await front.until(lambda: front.packs[-1].stats.running == 1)
