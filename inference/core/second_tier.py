"""Restore or recompute: what memory evicts goes to disk, and a waiting sequence gets back what is worth waiting for.

Restoring pays while bytes / read rate < tokens / prefill rate, both as measured. Knows rates, deadlines and who waits;
files are `disk_tier`'s, blocks are `adoption`'s. Whatever goes wrong, a sequence is computed as if there were no disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from inference.core import adoption
from inference.core.disk_tier import DiskTier, Reading
from inference.core.kept import Content
from inference.core.kv_cache import KvCache
from inference.core.sequence import Sequence

# A chain is read in parts of this size: what was read waits in memory until the loop looks.
MAX_PART_BYTES = 64 * 1024 * 1024
# A reading may take as long as computing would, and this long at least: a small chain on a sleeping disk.
MIN_PATIENCE_S = 0.1
# As long as the prefill rate is not known.
FIRST_PATIENCE_S = 1.0
# A disk that was too slow is left alone for so long, and a read rate that is older counts as unknown: things change.
RETRY_S = 60.0
# How often an otherwise idle loop looks whether a reading is done.
POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class BlockBytes:
    """The numbers of one block, as they lie in memory."""

    read: Callable[[int], bytes]
    write: Callable[[int, memoryview], None]


@dataclass(frozen=True, slots=True)
class _Visit:
    """A sequence's wait for the disk."""

    reading: Reading
    gives_up_at: float


class SecondTier:
    """Called by the loop's thread only."""

    def __init__(
        self, kv: KvCache, disk: DiskTier, block_bytes: BlockBytes, prefill_tokens_per_s: Callable[[], float]
    ) -> None:
        """`prefill_tokens_per_s()` is 0 until it was measured."""
        self.disk = disk
        self._kv = kv
        self._block_bytes = block_bytes
        self._prefill_tokens_per_s = prefill_tokens_per_s
        self._visits: dict[str, _Visit] = {}
        self._settled: set[str] = set()  # waiting sequences that got what there was
        self._paused_until = float("-inf")
        kv.kept.on_evict = self._keep

    # --- out

    def forget(self, conversation: bytes) -> None:
        self.disk.forget(conversation)

    def close(self, timeout_s: float) -> None:
        """Keep what memory holds, so that the next start is warm, as far as time allows."""
        ends_at = time.monotonic() + timeout_s
        contents = self._kv.kept.contents()
        for content in contents:
            if self.disk.is_full and not self.disk.settle(ends_at - time.monotonic()):
                break
            self._keep(content)
        self.disk.stamp([content.identity for content in contents])
        self.disk.close(max(0.0, ends_at - time.monotonic()))

    def _keep(self, content: Content) -> None:
        if content.conversations:  # what belongs to none could be erased by nobody
            self.disk.offer(
                content.identity, content.conversations[0], lambda: self._block_bytes.read(content.block)
            )

    # --- back

    def begin_step(self, waiting: Iterable[Sequence]) -> None:
        """These wait now. Who left the queue waits for no disk, and looks again when it comes back."""
        ids = {sequence.id for sequence in waiting}
        self._settled &= ids
        for left in self._visits.keys() - ids:
            self._visits.pop(left).reading.is_given_up = True

    def is_ready(self, sequence: Sequence, now: float) -> bool:
        """Whether the sequence has nothing to wait for. Ask before it takes its blocks."""
        if sequence.id in self._settled or not self.disk.num_blocks:
            return True
        if not adoption.has_room(self._kv, sequence):
            return True  # nor can it start now; it asks again
        visit = self._next_visit(sequence, self._visits.pop(sequence.id, None), now)
        if visit is None:
            self._settled.add(sequence.id)
            return True
        self._visits[sequence.id] = visit
        return False

    def rest_s(self, waiting: Iterable[Sequence]) -> float:
        """How long the loop may sleep when nobody runs: a moment, if all who wait wait for the disk."""
        return POLL_S if all(sequence.id in self._visits for sequence in waiting) else 0.0

    def _next_visit(self, sequence: Sequence, visit: _Visit | None, now: float) -> _Visit | None:
        """What the sequence waits for from now on; None: nothing."""
        if visit is None:
            return self._begin(sequence, now)
        if visit.reading.is_done:
            is_complete = self._adopt(sequence, visit.reading)
            return self._begin(sequence, now, visit.gives_up_at) if is_complete else None
        if now < visit.gives_up_at:
            return visit
        visit.reading.is_given_up = True
        self._paused_until = now + RETRY_S
        return None

    def _begin(self, sequence: Sequence, now: float, gives_up_at: float | None = None) -> _Visit | None:
        if now < self._paused_until:
            return None
        missing = adoption.missing(self._kv, sequence)
        num_kept = self.disk.num_kept(missing)
        if not num_kept or not self._pays(num_kept, now):
            return None
        if gives_up_at is None:
            gives_up_at = now + self._patience_s(num_kept)
        part = max(1, MAX_PART_BYTES // self.disk.block_bytes)
        return _Visit(self.disk.read(missing[: min(num_kept, part)]), gives_up_at)

    def _adopt(self, sequence: Sequence, reading: Reading) -> bool:
        """Whether all that was asked for is in memory now."""
        num_adopted = adoption.adopt(
            self._kv, sequence, reading.blocks, reading.payloads, self._block_bytes.write
        )
        self.disk.num_restored += num_adopted
        return num_adopted == len(reading.blocks)

    def _pays(self, num_blocks: int, now: float) -> bool:
        """A rate that is not known is found out by reading."""
        read, prefill = self.disk.read_rate, self._prefill_tokens_per_s()
        if not read.per_second or not prefill or now - read.measured_at > RETRY_S:
            return True
        restore_s = num_blocks * self.disk.block_bytes / read.per_second
        return restore_s < num_blocks * self._kv.block_tokens / prefill

    def _patience_s(self, num_blocks: int) -> float:
        prefill = self._prefill_tokens_per_s()
        if not prefill:
            return FIRST_PATIENCE_S
        return max(MIN_PATIENCE_S, num_blocks * self._kv.block_tokens / prefill)
