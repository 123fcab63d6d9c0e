"""One simulated run: arrivals in, measurements out, and the promises of the scheduler checked in every step.

Joins the real scheduler, block bookkeeping and books to a cost model and a load. Does not know how results are shown.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from inference.core.books import Books, Bounds
from inference.core.chunk import Chunk
from inference.core.kv_cache import BlockActions, KvCache
from inference.core.limits import Limits
from inference.core.prefix import PrefixCache
from inference.core.scheduler import Scheduler
from inference.core.sequence import State
from inference.simulation.costs import Clock, CostModel, PricedForward
from inference.simulation.load import VOCABULARY, Arrival
from inference.simulation.service import ServiceGap

BLOCK_TOKENS = 16
# What 512 MB hold of SmolLM2-135M in bf16, at 22.5 KiB per token.
NUM_BLOCKS = 1456

# (an arrival, what was generated for it, the time) -> what its user sends next
Reply = Callable[[Arrival, list[int], float], Arrival | None]


@dataclass(slots=True)
class Answer:
    """What one request saw."""

    arrival: Arrival
    token_times: list[float] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    ended_at: float = 0.0
    run_s: float = 0.0  # with a seat

    @property
    def ttft_s(self) -> float:
        return self.token_times[0] - self.arrival.at_s

    @property
    def tpot_s(self) -> float:
        return (self.token_times[-1] - self.token_times[0]) / max(1, len(self.token_times) - 1)


@dataclass(slots=True)
class Run:
    """What one run measured."""

    answers: list[Answer] = field(default_factory=list)
    stream_steps: list[tuple[float, float]] = field(
        default_factory=list
    )  # (seconds, without prefill and noise)
    num_steps: int = 0
    num_preemptions: int = 0
    prefilled_tokens: int = 0
    reused_tokens: int = 0
    service_gap: float = 0.0
    ended_at: float = 0.0


class PromiseBroken(AssertionError):
    """The scheduler did what it must never do."""


class SimulatedEngine:
    """A core without a model."""

    def __init__(self, limits: Limits, costs: CostModel, seed: int = 0, num_blocks: int = NUM_BLOCKS) -> None:
        self._clock = Clock()
        nothing = BlockActions(copy=lambda source, target: None, wipe=lambda block: None)
        self._kv = KvCache(num_blocks, PrefixCache(b"simulated", BLOCK_TOKENS), nothing)
        self._scheduler = Scheduler(self._kv, limits)
        bounds = Bounds(num_blocks * BLOCK_TOKENS, VOCABULARY, block_bytes=1)
        self._books = Books(self._kv, self._scheduler, bounds, self._clock)
        self._forward = PricedForward(costs, self._clock, seed, VOCABULARY)
        self._coming: list[tuple[float, int, Arrival]] = []
        self._num_sent = 0
        self._gap = ServiceGap()
        self._live: dict[str, Answer] = {}
        self._run = Run()

    def run(self, arrivals: list[Arrival], reply: Reply) -> Run:
        """Until everybody has been answered."""
        for arrival in arrivals:
            self._send(arrival)
        while self._coming or self._scheduler.has_work:
            if not self._scheduler.has_work:
                self._clock.now = max(self._clock.now, self._coming[0][0])
            self._admit_due()
            self._step(reply)
        self._run.num_preemptions = self._scheduler.num_preemptions
        self._run.prefilled_tokens = self._books.counters.prefilled_tokens
        self._run.reused_tokens = self._books.counters.prompt_tokens - self._run.prefilled_tokens
        self._run.service_gap = self._gap.largest
        self._run.ended_at = self._clock.now
        return self._run

    def _send(self, arrival: Arrival) -> None:
        self._num_sent += 1
        heapq.heappush(self._coming, (arrival.at_s, self._num_sent, arrival))

    def _admit_due(self) -> None:
        while self._coming and self._coming[0][0] <= self._clock.now:
            _, _, arrival = heapq.heappop(self._coming)
            self._live[arrival.admit.id] = Answer(arrival)
            self._books.admit(arrival.admit, self._clock.now)

    def _step(self, reply: Reply) -> None:
        started = self._clock.now
        streams = [s for s in self._scheduler.running if s.state is State.DECODE]
        chunks = self._scheduler.schedule(started)
        advanced = {chunk.sequence.id for chunk in chunks}
        standing = [s.id for s in streams if s.state is State.DECODE and s.id not in advanced]
        if not chunks:
            raise PromiseBroken(f"work is pending at {started:.3f} s and nothing runs")
        if standing:
            raise PromiseBroken(f"streams {standing} stood still at {started:.3f} s")
        self._gap.served(chunks)
        self._forward_and_book(chunks)
        self._gap.look(self._scheduler.waiting)
        self._listen(reply)

    def _forward_and_book(self, chunks: list[Chunk]) -> None:
        started = self._clock.now
        has_streams = any(c.sequence.state is State.DECODE and not c.sequence.is_offline for c in chunks)
        self._books.book(chunks, self._forward.run(chunks))
        seconds = self._clock.now - started
        self._scheduler.on_step(seconds)
        self._run.num_steps += 1
        if has_streams:
            self._run.stream_steps.append((seconds, self._forward.bare_s))

    def _listen(self, reply: Reply) -> None:
        news = self._books.take_news()
        for token in news.tokens:
            self._live[token.id].token_times.append(self._clock.now)
            self._live[token.id].token_ids.append(token.token)
        for end in news.finished:
            answer = self._live.pop(end.id)
            if end.error:
                raise PromiseBroken(f"{end.id} failed: {end.error}")
            answer.ended_at, answer.run_s = self._clock.now, end.prefill_s + end.decode_s
            self._run.answers.append(answer)
            following = reply(answer.arrival, answer.token_ids, self._clock.now)
            if following is not None:
                self._send(following)
