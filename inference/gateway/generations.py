"""The sequences of a gateway core: a bounded number is asked of the upstream, the others wait their turn here.

Knows order, places and the one end of every sequence. Does not know HTTP: `completion` asks, and may fail.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import insort
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from inference.core.messages import Admit, Cancel, FinishedOut, PrefillProgress, TokenOut
from inference.gateway.completion import Ending, Take
from inference.gateway.counters import Counters
from inference.gateway.errors import UpstreamError
from inference.gateway.outbox import Outbox
from inference.types import FinishReason

log = logging.getLogger(__name__)


class Asks(Protocol):
    def __call__(self, admit: Admit, take: Take) -> Awaitable[Ending]: ...


@dataclass(frozen=True, slots=True)
class _End:
    reason: str
    error: str = ""
    cached_tokens: int | None = None


@dataclass(slots=True)
class Sequence:
    """`order` puts warm-ups behind bulk work behind people; equals go first come, first served."""

    admit: Admit
    order: tuple[bool, bool, int, int]
    accepted_at: float
    started_at: float = 0.0
    first_token_at: float = 0.0
    num_tokens: int = 0
    cancelled_as: str = ""
    task: asyncio.Task[_End] | None = None


class Generations:
    """Every admitted sequence ends in exactly one FinishedOut, after its connection is closed."""

    def __init__(
        self,
        ask: Asks,
        outbox: Outbox,
        counters: Counters,
        *,
        max_running: int,
        clock: Callable[[], float],
    ) -> None:
        self._ask = ask
        self._outbox = outbox
        self._counters = counters
        self._max_running = max_running
        self._clock = clock
        self._num_admitted = 0
        self._waiting: list[Sequence] = []
        self._running: dict[str, Sequence] = {}
        self._told_positions: list[tuple[str, int]] = []

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def waiting_tokens(self) -> int:
        return sum(len(sequence.admit.prompt_ids) for sequence in self._waiting)

    def admit(self, admit: Admit) -> None:
        if self._find(admit.id) is not None:
            log.warning("sequence %s is already here; the second admission is ignored", admit.id)
            return
        self._num_admitted += 1
        order = (admit.is_background, admit.is_offline, admit.priority, self._num_admitted)
        insort(self._waiting, Sequence(admit, order, self._clock()), key=lambda sequence: sequence.order)
        self._counters.prompt_tokens += len(admit.prompt_ids)
        self._start_next()

    def cancel(self, command: Cancel) -> None:
        """From any state; harmless when the sequence has ended."""
        sequence = self._find(command.id)
        if sequence is None or sequence.cancelled_as:
            return
        sequence.cancelled_as = command.reason
        self._counters.cancelled += not command.is_own_end
        if sequence.task is not None:
            sequence.task.cancel()  # closes the connection: the upstream frees the place at once
        else:
            self._waiting.remove(sequence)
            self._leave(sequence, _End(command.reason))

    async def close(self) -> None:
        tasks = [sequence.task for sequence in self._running.values() if sequence.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def news_of_positions(self) -> list[tuple[str, int]]:
        """Queue positions that differ from what was said last."""
        positions = [(sequence.admit.id, ahead) for ahead, sequence in enumerate(self._waiting)]
        told = set(self._told_positions)
        self._told_positions = positions
        return [position for position in positions if position not in told]

    def _find(self, sequence_id: str) -> Sequence | None:
        waiting = (sequence for sequence in self._waiting if sequence.admit.id == sequence_id)
        return self._running.get(sequence_id) or next(waiting, None)

    def _start_next(self) -> None:
        while self._waiting and len(self._running) < self._max_running:
            sequence = self._waiting.pop(0)
            sequence.started_at = self._clock()
            self._running[sequence.admit.id] = sequence
            sequence.task = asyncio.create_task(self._run(sequence), name=f"answer-{sequence.admit.id}")
            sequence.task.add_done_callback(partial(self._on_end, sequence))
        self._outbox.news.set()  # places have moved

    async def _run(self, sequence: Sequence) -> _End:
        try:
            ending = await self._ask(sequence.admit, lambda tokens: self._take(sequence, tokens))
        except UpstreamError as failure:
            log.warning("sequence %s failed: %s", sequence.admit.id, failure)
            return _End(FinishReason.FAILED, str(failure))
        except Exception as bug:  # ends this one only
            log.exception("sequence %s failed", sequence.admit.id)
            return _End(FinishReason.FAILED, f"the gateway failed: {bug!r}")
        reason = ending.reason if sequence.admit.max_tokens else FinishReason.LENGTH
        return _End(reason, cached_tokens=ending.cached_tokens)

    def _on_end(self, sequence: Sequence, task: asyncio.Task[_End]) -> None:
        """Also of a task that was cancelled before it began."""
        del self._running[sequence.admit.id]
        if sequence.cancelled_as:
            self._leave(sequence, _End(sequence.cancelled_as))
        elif not task.cancelled():
            self._leave(sequence, task.result())
        else:
            return  # the whole core is ending
        self._start_next()

    def _take(self, sequence: Sequence, tokens: list[TokenOut]) -> None:
        if not sequence.first_token_at:
            sequence.first_token_at = self._clock()
            num_prompt = len(sequence.admit.prompt_ids)
            self._outbox.progress.append(PrefillProgress(sequence.admit.id, num_prompt, num_prompt))
        if sequence.admit.max_tokens:  # else a warm-up: the upstream had to make one token that nobody wants
            sequence.num_tokens += len(tokens)
            self._counters.generated_tokens += len(tokens)
            self._outbox.tokens += tokens
        self._outbox.news.set()

    def _leave(self, sequence: Sequence, end: _End) -> None:
        now, num_prompt = self._clock(), len(sequence.admit.prompt_ids)
        started_at = sequence.started_at or now
        first_token_at = sequence.first_token_at or now
        has_prefilled = sequence.first_token_at > 0
        cached = None if end.cached_tokens is None else min(end.cached_tokens, num_prompt)
        if has_prefilled:
            self._counters.on_finished(num_prompt, cached)
        report = FinishedOut(
            sequence.admit.id,
            str(end.reason),
            end.error,
            prompt_tokens=num_prompt,
            reused_prefix_tokens=cached or 0,
            prefilled_tokens=num_prompt - (cached or 0) if has_prefilled else 0,
            generated_tokens=sequence.num_tokens,
            queue_s=started_at - sequence.accepted_at,
            prefill_s=first_token_at - started_at,
            decode_s=now - first_token_at,
        )
        if sequence.admit.is_background:
            self._counters.on_background(report)
        self._outbox.finished.append(report)
        self._outbox.news.set()
