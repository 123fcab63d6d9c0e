"""The numbers of a core: what is counted where, joined into one message.

Knows which part counts what. Decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference.core.kv_cache import KvCache
from inference.core.lane import Lane
from inference.core.messages import CoreStats, FinishedOut
from inference.core.retention import Retention
from inference.core.reuse import Source
from inference.core.scheduler import Scheduler
from inference.core.sharing import Sharing


@dataclass(slots=True)
class Counters:
    """Totals since the core started that no part counts itself."""

    steps: int = 0
    decode_forwards: int = 0
    prompt_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    cancelled: int = 0
    leak_alarms: int = 0
    step_seconds_sum: float = 0.0
    device_seconds: float = 0.0
    background_prompt_tokens: int = 0
    background_reused_tokens: int = 0
    background_prefilled_tokens: int = 0
    background_generated_tokens: int = 0
    background_device_seconds: float = 0.0

    def on_background(self, end: FinishedOut) -> None:
        """Of the totals, what a sequence took that nobody asked for."""
        self.background_prompt_tokens += end.prompt_tokens
        self.background_reused_tokens += end.reused_tokens
        self.background_prefilled_tokens += end.prefilled_tokens
        self.background_generated_tokens += end.generated_tokens
        self.background_device_seconds += end.device_seconds


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one KV block, and what of the device is in use now."""

    block_bytes: int
    device_bytes: int


def snapshot(
    counters: Counters, scheduler: Scheduler, kv: KvCache, lane: Lane, sharing: Sharing, memory: Memory
) -> CoreStats:
    """Totals since the start, and gauges of now."""
    pool, kept = kv.pool, kv.pool.cached_by_class()
    disk = scheduler.second_tier.disk if scheduler.second_tier is not None else None
    return CoreStats(
        steps=counters.steps,
        decode_forwards=counters.decode_forwards,
        running=len(scheduler.running),
        waiting=len(scheduler.waiting),
        waiting_tokens=sum(len(sequence.token_ids) for sequence in scheduler.waiting),
        prompt_tokens=counters.prompt_tokens,
        reused_head_tokens=kv.num_reused[Source.HEAD],
        reused_prefix_tokens=kv.num_reused[Source.PREFIX],
        reused_shared_tokens=kv.num_reused[Source.SHARED],
        reused_disk_tokens=kv.num_reused[Source.DISK],
        prefilled_tokens=counters.prefilled_tokens,
        generated_tokens=counters.generated_tokens,
        drafted_tokens=counters.drafted_tokens,
        accepted_tokens=counters.accepted_tokens,
        preemptions=scheduler.num_preemptions,
        evicted_blocks=pool.num_evicted,
        cancelled=counters.cancelled,
        blocks_total=pool.num_blocks,
        blocks_used=pool.num_used,
        blocks_cached=pool.num_cached,
        blocks_free=pool.num_free,
        blocks_closed=kept[Retention.CLOSED],
        blocks_superseded=kept[Retention.SUPERSEDED],
        blocks_stale=kept[Retention.STALE],
        blocks_idle=kept[Retention.IDLE],
        blocks_active=kept[Retention.ACTIVE],
        blocks_shared=kept[Retention.SHARED],
        kv_budget_bytes=pool.num_blocks * memory.block_bytes,
        kv_committed_bytes=pool.num_committed * memory.block_bytes,
        kv_slack=kv.slack(scheduler.running),
        embedded_texts=lane.num_embedded,
        verified_pairs=lane.num_verified,
        lane_batches=lane.num_batches,
        step_seconds_sum=counters.step_seconds_sum,
        device_seconds=counters.device_seconds,
        background_prompt_tokens=counters.background_prompt_tokens,
        background_reused_tokens=counters.background_reused_tokens,
        background_prefilled_tokens=counters.background_prefilled_tokens,
        background_generated_tokens=counters.background_generated_tokens,
        background_device_seconds=counters.background_device_seconds,
        warmed_tokens=kv.kept.warmed.num_tokens,
        warmed_used_tokens=kv.kept.warmed.num_used_tokens,
        warmed_wasted_tokens=kv.kept.warmed.num_wasted_tokens,
        forgotten_blocks=kv.num_forgotten,
        leak_alarms=counters.leak_alarms,
        waiting_offline=scheduler.num_waiting_offline,
        waiting_for_seats=scheduler.num_waiting_for_seats,
        waiting_for_blocks=scheduler.num_waiting_for_blocks,
        device_bytes=memory.device_bytes,
        disk_skipped_blocks=disk.num_skipped if disk else 0,
        disk_blocks=disk.num_blocks if disk else 0,
        disk_bytes=disk.num_bytes if disk else 0,
        disk_written_blocks=disk.num_written if disk else 0,
        disk_restored_blocks=disk.num_restored if disk else 0,
        disk_refused_blocks=disk.num_refused if disk else 0,
        restore_bytes_per_s=disk.read_rate.per_second if disk else 0.0,
        prefill_tokens_per_s=scheduler.pacer.prefill_tokens_per_s,
        step_target_tokens=float(scheduler.step_target_tokens),
        shared_prefixes=sharing.reports(),
    )
