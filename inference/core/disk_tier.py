"""The disk tier at work: blocks go out by one thread and come back by another, and the loop never waits for either.

Knows queues, bounds and measured speed. Does not know files (`disk_store`), when reading pays (`second_tier`)
or what a block of tensors is. A disk that is full, gone or slow costs copies, never an answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from inference.core.disk_store import DiskStore, erase
from inference.core.prefix import BlockIdentity
from inference.core.rates import MeasuredRate

# Copies of blocks that wait for the disk live in memory; beyond this a block is not kept.
MAX_QUEUED_BYTES = 64 * 1024 * 1024
# After an error nothing is written for so long: a full disk is not asked once per block.
WRITE_PAUSE_S = 10.0

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Write:
    """One block on its way to the disk."""

    block: BlockIdentity
    conversation: bytes
    payload: bytes
    is_wanted: bool = True


@dataclass(slots=True, eq=False)
class Reading:
    """Blocks of one chain on their way back. `payloads` fit the first of `blocks`; the loop looks when `is_done`."""

    blocks: Sequence[BlockIdentity]
    payloads: list[memoryview] = field(default_factory=list)
    is_done: bool = False
    is_given_up: bool = False


@dataclass(frozen=True, slots=True)
class Threads:
    """Who writes and who reads: one thread each, so that a queue of writes delays no read and no erasure."""

    writer: Executor
    reader: Executor

    @classmethod
    def start(cls) -> Threads:
        return cls(ThreadPoolExecutor(1, "kv-disk-writer"), ThreadPoolExecutor(1, "kv-disk-reader"))


class DiskTier:
    """Everything is called by the loop's thread; only `_write`, `_read` and `erase` run elsewhere."""

    def __init__(
        self, store: DiskStore, threads: Threads, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.num_written = 0
        self.num_restored = 0
        self.num_skipped = 0  # the queue was full, or the disk is not written to just now
        self.read_rate = MeasuredRate()  # bytes
        self._store = store
        self._threads = threads
        self._clock = clock
        self._lock = threading.Lock()
        self._writes: set[_Write] = set()
        self._erasures: set[Future[None]] = set()
        self._paused_until = float("-inf")

    @property
    def block_bytes(self) -> int:
        return self._store.layout.num_bytes

    @property
    def num_blocks(self) -> int:
        return len(self._store)

    @property
    def num_bytes(self) -> int:
        return self._store.num_bytes

    @property
    def num_refused(self) -> int:
        return self._store.num_refused

    @property
    def is_full(self) -> bool:
        """Whether as much waits for the disk as may."""
        return (len(self._writes) + 1) * self.block_bytes > max(MAX_QUEUED_BYTES, self.block_bytes)

    def offer(self, block: BlockIdentity, conversation: bytes, payload: Callable[[], bytes]) -> None:
        """Keep a block that memory is about to lose. `payload` copies its numbers, and only when they are needed."""
        if self._store.has(block):
            self._store.touch(block)
            return
        if self.is_full or self._clock() < self._paused_until:
            self.num_skipped += 1
            return
        write = _Write(block, conversation, payload())
        with self._lock:
            self._writes.add(write)
        self._threads.writer.submit(self._write, write)

    def stamp(self, chain: Sequence[BlockIdentity]) -> None:
        """These were used last; of blocks on their way to the disk too."""
        self._threads.writer.submit(self._store.stamp, chain)

    def num_kept(self, blocks: Sequence[BlockIdentity]) -> int:
        """How many leading blocks of a chain are on disk."""
        return next((n for n, block in enumerate(blocks) if not self._store.has(block)), len(blocks))

    def read(self, blocks: Sequence[BlockIdentity]) -> Reading:
        """Starts to read a chain; it ends early at the first block that is not there or cannot be believed."""
        reading = Reading(blocks)
        self._threads.reader.submit(self._read, reading)
        return reading

    def forget(self, conversation: bytes) -> None:
        """Erase a conversation's blocks, also those on their way out. None of them is found any more."""
        with self._lock:
            for write in self._writes:
                if write.conversation == conversation:
                    write.is_wanted = False
        paths = self._store.lose(conversation)
        self._erasures = {erasure for erasure in self._erasures if not erasure.done()}
        if paths:
            self._erasures.add(self._threads.reader.submit(erase, paths))

    def settle(self, timeout_s: float | None = None) -> bool:
        """Wait until all that was given out is done; False when that takes too long."""
        last = [executor.submit(_nothing) for executor in (self._threads.writer, self._threads.reader)]
        return not wait([*last, *self._erasures], timeout_s).not_done

    def close(self, timeout_s: float) -> None:
        """Write and erase what waits, as far as time allows."""
        if not self.settle(timeout_s):
            log.warning("the disk is slow: some KV was not written before the end")
        for executor in (self._threads.writer, self._threads.reader):
            executor.shutdown(wait=False, cancel_futures=True)
        self._store.close()

    # --- in the threads

    def _write(self, write: _Write) -> None:
        try:
            if write.is_wanted and self._clock() >= self._paused_until:
                self.num_written += self._store.put(
                    write.block, write.conversation, write.payload, lambda: write.is_wanted
                )
        except OSError as error:
            self._paused_until = self._clock() + WRITE_PAUSE_S
            log.warning("KV cannot be kept on disk now: %s", error)
        except Exception:
            log.exception("a KV block was not written")
        finally:
            with self._lock:
                self._writes.discard(write)

    def _read(self, reading: Reading) -> None:
        started = time.perf_counter()
        try:
            for block in reading.blocks:
                payload = None if reading.is_given_up else self._store.get(block)
                if payload is None:
                    break
                reading.payloads.append(payload)
            self._store.stamp(reading.blocks[: len(reading.payloads)])
        except Exception:
            log.exception("a KV block was not read")
        num_bytes = len(reading.payloads) * self.block_bytes
        if num_bytes:
            self.read_rate.measure(num_bytes, time.perf_counter() - started, self._clock())
        reading.is_done = True


def open_disk_tier(store: DiskStore, owner_id: str) -> DiskTier | None:
    """None, with a line in the log, when the folder cannot be used: the engine serves without."""
    try:
        store.open(owner_id)
        tier = DiskTier(store, Threads.start())
        store.erase_other_models()
    except OSError as error:
        log.warning("no KV is kept on disk: %s", error)
        return None
    log.info("KV on disk: %d blocks, %.0f MB, in %s", tier.num_blocks, tier.num_bytes / 1e6, store.folder)
    return tier


def disk_folder(data_dir: Path, fingerprint: str) -> Path:
    return data_dir / "kv" / fingerprint


def _nothing() -> None:
    """The last job in a thread's queue: when it is done, all before it are."""
