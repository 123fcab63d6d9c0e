"""The book-keeping of sequences: admitted, advanced by outcomes, ended; and what the front hears of it.

Knows every live sequence, when its blocks may be found by others and why it ends. Does not know tensors: the outcomes
of a forward are plain values, so a simulation can drive these books without a model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Rows
from dataclasses import dataclass, field

from inference.core.admission import objection
from inference.core.chunk import Chunk
from inference.core.counters import Counters
from inference.core.kv_cache import KvCache
from inference.core.messages import Admit, Cancel, FinishedOut, Forget, PrefillProgress, TokenOut
from inference.core.outcome import Outcome
from inference.core.prefix import Salts
from inference.core.scheduler import Scheduler
from inference.core.sequence import Sequence, State
from inference.types import FinishReason

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no sequence may exceed, and the size of a block for its report."""

    max_context: int
    vocab_size: int
    block_bytes: int


@dataclass(slots=True)
class News:
    """What happened to sequences since it was last asked."""

    tokens: list[TokenOut] = field(default_factory=list)
    progress: list[PrefillProgress] = field(default_factory=list)
    finished: list[FinishedOut] = field(default_factory=list)
    positions: list[tuple[str, int]] = field(default_factory=list)


class Books:
    """Every sequence that is not finished, by id."""

    def __init__(self, kv: KvCache, scheduler: Scheduler, bounds: Bounds, clock: Callable[[], float]) -> None:
        self.counters = Counters()
        self._kv = kv
        self._scheduler = scheduler
        self._bounds = bounds
        self._clock = clock
        self._live: dict[str, Sequence] = {}
        self._arrivals = 0
        self._news = News()
        self._told_positions: list[tuple[str, int]] = []

    # --- commands

    def admit(self, command: Admit, now: float, salts: Salts | None = None) -> None:
        """`salts`: whose the blocks are, where they are not all the request's own."""
        if command.id in self._live:
            log.warning("sequence %s is already here; the second admission is ignored", command.id)
            return
        self._arrivals += 1
        sequence = Sequence(command, self._arrivals, now)
        sequence.salts = salts or sequence.salts
        self.counters.prompt_tokens += sequence.num_prompt
        self._live[sequence.id] = sequence
        self._scheduler.add(sequence)
        reason = objection(command, self._bounds.max_context, self._bounds.vocab_size)
        if reason:
            self.refuse(sequence, reason)

    def refuse(self, sequence: Sequence, reason: str) -> None:
        """End a sequence that can never run."""
        self._end(sequence, FinishReason.FAILED, error=reason)

    def cancel(self, command: Cancel) -> None:
        sequence = self._live.get(command.id)
        if sequence is None:
            return  # ended already, or never here
        self.counters.cancelled += not command.is_own_end
        self._end(sequence, command.reason, keep_tokens=command.keep_tokens)

    def forget(self, command: Forget) -> None:
        for sequence in self._live.values():
            admit = sequence.admit
            is_meant = admit.conversation == command.conversation and not command.salt
            if is_meant or (command.salt and admit.salt == command.salt):
                sequence.is_forgotten = True
        if command.salt:
            self._kv.forget_user(command.salt)
        else:
            self._kv.forget(command.conversation)

    # --- the outcomes of a forward

    def charge(self, chunks: Rows[Chunk], seconds: float) -> None:
        """Share the device's time in this step among its sequences, by the tokens that each had in it."""
        self.counters.device_seconds += seconds
        num_tokens = sum(chunk.num_tokens for chunk in chunks)
        for chunk in chunks:
            chunk.sequence.device_seconds += seconds * chunk.num_tokens / num_tokens

    def book(self, chunks: Iterable[Chunk], outcomes: Iterable[Outcome]) -> None:
        """Advance every chunk's sequence, give it its token, end it where that was the last.

        Each right guess of a draft is booked as a step of its own: it was the token of the outcome before, its KV is
        written, and its outcome brings the next one. Wrong guesses are in no book; their slots are written again.
        """
        for chunk, outcome in zip(chunks, outcomes, strict=True):
            if chunk.draft:
                self._judge(chunk, len(outcome.more))
            num_tokens = chunk.num_known
            for one in (outcome, *outcome.more):
                self._book_one(chunk.sequence, num_tokens, one)
                if chunk.sequence.state is State.FINISHED:
                    break
                num_tokens = 1

    def _judge(self, chunk: Chunk, num_accepted: int) -> None:
        sequence, num_drafted = chunk.sequence, len(chunk.draft)
        self.counters.drafted_tokens += num_drafted
        self.counters.accepted_tokens += num_accepted
        self._scheduler.accept_draft(sequence, num_accepted)
        if sequence.drafts is not None:
            sequence.drafts.judge(num_drafted, num_accepted, sequence.num_generated + num_accepted + 1)

    def _book_one(self, sequence: Sequence, num_tokens: int, outcome: Outcome) -> None:
        if outcome.error:
            self._fail(sequence, outcome.error)
            return
        self._advance(sequence, num_tokens)
        self._kv.publish(sequence)  # only now: blocks of broken numbers must never be found
        if outcome.token is not None:
            self._accept(sequence, outcome.token, outcome)

    def _advance(self, sequence: Sequence, num_tokens: int) -> None:
        before = sequence.prompt_done
        sequence.advance(num_tokens)
        self.counters.prefilled_tokens += sequence.prompt_done - before
        if sequence.state is State.PREFILL:
            self._news.progress.append(
                PrefillProgress(sequence.id, sequence.prompt_done, sequence.num_prompt)
            )

    def _accept(self, sequence: Sequence, token: int, outcome: Outcome) -> None:
        limit = min(sequence.admit.max_tokens, self._bounds.max_context - sequence.num_prompt)
        if limit <= 0:  # a warm-up: the prompt is all there is to do
            self._end(sequence, FinishReason.LENGTH)
            return
        if sequence.state is State.PREFILL:
            sequence.move(State.DECODE, self._clock())
        sequence.token_ids.append(token)
        self.counters.generated_tokens += 1
        self._news.tokens.append(TokenOut(sequence.id, token, outcome.logprob, list(outcome.top)))
        if token in sequence.admit.stop_ids:
            self._end(sequence, FinishReason.STOP)
        elif sequence.num_generated >= limit:
            self._end(sequence, FinishReason.LENGTH)

    # --- the end of a sequence

    def _fail(self, sequence: Sequence, error: str) -> None:
        log.error("sequence %s failed: %s", sequence.id, error)
        now = self._clock()
        self._kv.discard(sequence, now)
        self._leave(sequence, FinishReason.FAILED, error, now)

    def _end(self, sequence: Sequence, reason: str, *, error: str = "", keep_tokens: int = -1) -> None:
        now = self._clock()
        self._kv.finish(sequence, now, keep_tokens)
        self._leave(sequence, reason, error, now)

    def _leave(self, sequence: Sequence, reason: str, error: str, now: float) -> None:
        self._scheduler.remove(sequence)
        sequence.move(State.FINISHED, now)
        sequence.finish_reason, sequence.error = str(reason), error
        del self._live[sequence.id]
        report = sequence.report(self._bounds.block_bytes)
        if sequence.is_background:
            self.counters.on_background(report)
        self._news.finished.append(report)

    # --- what the front hears

    def take_news(self) -> News:
        """Everything since the last call; queue positions only where they differ from what was said last."""
        news, self._news = self._news, News()
        positions = [(sequence.id, ahead) for ahead, sequence in enumerate(self._scheduler.waiting)]
        told = set(self._told_positions)
        self._told_positions = positions
        news.positions = [position for position in positions if position not in told]
        return news
