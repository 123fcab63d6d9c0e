"""The core's loop: drain the inbox, serve the lane, schedule, run one forward and sample, book, emit.

Knows the order of a step and who answers which command. Does not know sockets (`pipe`), how the model was loaded
(`startup`), how tokens are made (`forward`) or what they mean for a sequence (`books`). Imports no torch: whatever
turns chunks into outcomes can be driven, a simulation too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from inference.core.books import Books, Bounds
from inference.core.chunk import Chunk
from inference.core.counters import Counters, Memory, snapshot
from inference.core.grammars import Grammars
from inference.core.kv_cache import KvCache
from inference.core.lane import Lane
from inference.core.messages import (
    Admit,
    Cancel,
    Command,
    CoreStats,
    EmbedTexts,
    Forget,
    SharePrefixes,
    StepPack,
    VerifyPairs,
    Vocabulary,
)
from inference.core.outcome import Outcome
from inference.core.scheduler import Scheduler
from inference.core.sequence import State
from inference.core.shared_prefixes import SharedPrefixes
from inference.core.sharing import Sharing

# While company is waited for, the loop still turns so often: the front must see that it lives.
MAX_REST_S = 1.0
# What memory holds goes to disk within this time at the end; the front waits a little longer for the core.
CLOSE_S = 3.0

log = logging.getLogger(__name__)


class Forward(Protocol):
    """What turns chunks into outcomes: `core.forward` with a model, a cost model without one."""

    def run(self, chunks: Sequence[Chunk]) -> list[Outcome]: ...


@dataclass(frozen=True, slots=True)
class CoreParts:
    """Everything a loop drives."""

    forward: Forward
    kv: KvCache
    scheduler: Scheduler
    lane: Lane
    bounds: Bounds
    clock: Callable[[], float]
    grammars: Grammars = field(default_factory=Grammars)
    shared_overlap: float = 1.0
    device_bytes: Callable[[], int] = int  # 0 where nobody asks


class CoreLoop:
    """The state of one core between steps."""

    def __init__(self, parts: CoreParts) -> None:
        self._forward = parts.forward
        self._kv = parts.kv
        self._scheduler = parts.scheduler
        self._scheduler.is_prepared = parts.grammars.is_ready
        self._lane = parts.lane
        self._grammars = parts.grammars
        self._clock = parts.clock
        prefixes = SharedPrefixes(parts.kv.block_tokens, parts.shared_overlap)
        self._sharing = Sharing(prefixes, parts.kv.kept)
        self._block_bytes = parts.bounds.block_bytes
        self._device_bytes = parts.device_bytes
        self._books = Books(parts.kv, parts.scheduler, parts.bounds, parts.clock)

    @property
    def has_work(self) -> bool:
        return self._scheduler.has_work or self._lane.has_work

    @property
    def num_waiting(self) -> int:
        return len(self._scheduler.waiting)

    def rest_s(self) -> float | None:
        """How long the loop may sleep unless a command arrives; None: until one does."""
        if not self.has_work:
            return None
        return 0.0 if self._lane.has_work else min(self._scheduler.rest_s(self._clock()), MAX_REST_S)

    def step(self, commands: Iterable[Command] = ()) -> Iterator[StepPack]:
        """One turn of the loop; gives what it has to say as soon as it is known.

        Who asked the lane waits for a look-up that should be quicker than a decode step: its answers leave before the
        forward.
        """
        started = self._clock()
        self._drain(commands, started)
        lane_step = self._lane.run_one(self._scheduler.lane_tokens)
        if lane_step.embedded or lane_step.verified:
            yield StepPack(embedded=lane_step.embedded, verified=lane_step.verified, stats=self.stats())
        chunks = self._schedule(started, lane_step.spent_tokens)
        if chunks:
            self._books.book(chunks, self._run(chunks))
        if chunks or lane_step.spent_tokens:
            self._measure(started)
        yield self._emit()

    def _drain(self, commands: Iterable[Command], now: float) -> None:
        self._kv.age(now)
        for command in commands:
            self._apply(command, now)
        for request in self._sharing.take_cold():
            self._books.admit(request, now, self._sharing.salts(request))

    def _schedule(self, now: float, lane_tokens: int) -> list[Chunk]:
        chunks = self._scheduler.schedule(now, lane_tokens)
        for sequence in self._scheduler.take_hopeless():
            self._books.refuse(
                sequence, "context_length_exceeded: all KV blocks together have no room for it"
            )
        is_decoding = any(chunk.sequence.state is State.DECODE for chunk in chunks)
        self._books.counters.decode_forwards += is_decoding
        return chunks

    def _run(self, chunks: list[Chunk]) -> list[Outcome]:
        """The outcomes are plain values, so the device is done with the step when they are here."""
        started = self._clock()
        outcomes = self._forward.run(chunks)
        self._books.charge(chunks, self._clock() - started)
        return outcomes

    def _measure(self, started: float) -> None:
        seconds = self._clock() - started
        self._books.counters.steps += 1
        self._books.counters.step_seconds_sum += seconds
        self._scheduler.on_step(seconds)

    def _emit(self) -> StepPack:
        if not self.has_work:
            self._kv.give_back()
        news = self._books.take_news()
        self._grammars.forget(end.id for end in news.finished)
        return StepPack(
            tokens=news.tokens,
            progress=news.progress,
            finished=news.finished,
            positions=news.positions,
            stats=self.stats(),
        )

    def _apply(self, command: Command, now: float) -> None:
        match command:
            case Vocabulary():
                self._grammars.learn(command)
            case Admit():
                self._grammars.begin(command)
                self._sharing.observe(command)
                self._books.admit(command, now, self._sharing.salts(command))
            case SharePrefixes():
                self._sharing.declare(command.prefixes)
            case Cancel():
                self._books.cancel(command)
            case Forget():
                self._books.forget(command)
                if self._scheduler.second_tier is not None:
                    self._scheduler.second_tier.forget(command.conversation)
            case EmbedTexts() | VerifyPairs():
                self._lane.add(command)

    def check_blocks(self) -> bool:
        """free + cached + used == total, and nothing is used when nothing runs. A leak is logged and counted."""
        problems = self._kv.imbalance()
        if not self._scheduler.running and self._kv.pool.num_used:
            problems.append(f"{self._kv.pool.num_used} blocks are used but nothing runs")
        for problem in problems:
            log.error("KV blocks do not add up: %s", problem)
        self._books.counters.leak_alarms += bool(problems)
        return not problems

    def stats(self) -> CoreStats:
        memory = Memory(self._block_bytes, self._device_bytes())
        return snapshot(self._books.counters, self._scheduler, self._kv, self._lane, self._sharing, memory)

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Keep on disk what would be lost with this process, as far as time allows."""
        tier, self._scheduler.second_tier = self._scheduler.second_tier, None
        if tier is not None:
            tier.close(timeout_s)

    def reset(self) -> None:
        """Forget all kept KV and start counting at zero: nothing of a warm-up is left."""
        assert not self.has_work, "only an idle core can be reset"
        self._kv.clear()
        self._scheduler.reset()
        self._lane.reset_counts()
        self._books.counters = Counters()
