"""The core's loop: drain the inbox, schedule, run one forward, sample, emit one pack.

Knows the order of a step and what every command means. Does not know sockets (`pipe`), how the model was loaded
(`startup`), or how blocks, batches and tokens are chosen: it calls those who do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from inference.core.admission import objection
from inference.core.counters import Counters, snapshot
from inference.core.kv_cache import KvCache
from inference.core.lane import EmbeddingLane
from inference.core.messages import (
    Admit,
    Cancel,
    Command,
    CoreStats,
    EmbedTexts,
    Forget,
    PrefillProgress,
    StepPack,
    TokenOut,
    Verified,
    VerifyPairs,
)
from inference.core.runner import Logits, Runner
from inference.core.sampler import Row, Sampled, sample
from inference.core.scheduler import Chunk, Scheduler
from inference.core.sequence import Sequence, State
from inference.types import FinishReason

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CoreParts:
    """Everything a loop drives."""

    runner: Runner
    kv: KvCache
    scheduler: Scheduler
    lane: EmbeddingLane
    max_context: int
    vocab_size: int
    block_bytes: int
    clock: Callable[[], float]


@dataclass(slots=True)
class _Outbox:
    """What this step has to say so far."""

    tokens: list[TokenOut] = field(default_factory=list)
    progress: list[PrefillProgress] = field(default_factory=list)
    finished: list[Sequence] = field(default_factory=list)
    verified: list[Verified] = field(default_factory=list)


class CoreLoop:
    """The state of one core between steps."""

    def __init__(self, parts: CoreParts) -> None:
        self.counters = Counters()
        self._parts = parts
        self._runner = parts.runner
        self._kv = parts.kv
        self._scheduler = parts.scheduler
        self._lane = parts.lane
        self._clock = parts.clock
        self._live: dict[str, Sequence] = {}
        self._arrivals = 0
        self._outbox = _Outbox()
        self._told_positions: list[tuple[str, int]] = []

    @property
    def has_work(self) -> bool:
        return self._scheduler.has_work or self._lane.has_work

    @property
    def num_waiting(self) -> int:
        return len(self._scheduler.waiting)

    def step(self, commands: Iterable[Command] = ()) -> StepPack:
        """One turn of the loop; gives everything it has to say."""
        started = self._clock()
        for command in commands:
            self._apply(command, started)
        lane_step = self._lane.run_one()
        chunks = self._scheduler.schedule(started, lane_step.spent_tokens)
        if chunks:
            decoding = any(chunk.sequence.state is State.DECODE for chunk in chunks)
            self._advance(chunks, self._forward(chunks))
            self.counters.decode_forwards += decoding
        if chunks or lane_step.spent_tokens:
            self.counters.steps += 1
            self.counters.step_seconds_sum += self._clock() - started
        outbox, self._outbox = self._outbox, _Outbox()
        return StepPack(
            tokens=outbox.tokens,
            progress=outbox.progress,
            finished=[sequence.report(self._parts.block_bytes) for sequence in outbox.finished],
            positions=self._news_of_positions(),
            embedded=lane_step.embedded,
            verified=outbox.verified,
            stats=self.stats(),
        )

    def check_blocks(self) -> bool:
        """free + cached + used == total, and nothing is used when nothing runs. A leak is logged and counted."""
        problems = self._kv.problems()
        if not self._scheduler.running and self._kv.pool.num_used:
            problems.append(f"{self._kv.pool.num_used} blocks are used but nothing runs")
        for problem in problems:
            log.error("KV blocks do not add up: %s", problem)
        self.counters.leak_alarms += bool(problems)
        return not problems

    def stats(self) -> CoreStats:
        return snapshot(self.counters, self._scheduler, self._kv, self._lane)

    def reset(self) -> None:
        """Forget all kept KV and start counting at zero: nothing of a warm-up is left."""
        assert not self.has_work, "only an idle core can be reset"
        self._kv.clear()
        self._scheduler.num_preemptions = self._lane.num_embedded = 0
        self.counters = Counters()

    # --- commands

    def _apply(self, command: Command, now: float) -> None:
        match command:
            case Admit():
                self._admit(command, now)
            case Cancel():
                self._cancel(command)
            case Forget():
                self._forget(command)
            case EmbedTexts():
                self._lane.add(command)
            case VerifyPairs():
                self._outbox.verified.append(Verified(id=command.id, scores=[], error="not supported"))

    def _admit(self, command: Admit, now: float) -> None:
        if command.id in self._live:
            log.warning("sequence %s is already here; the second admission is ignored", command.id)
            return
        self._arrivals += 1
        sequence = Sequence(command, self._arrivals, now)
        self.counters.prompt_tokens += sequence.num_prompt
        self._live[sequence.id] = sequence
        self._scheduler.add(sequence)
        reason = objection(command, self._parts.max_context, self._parts.vocab_size)
        if reason:
            self._end(sequence, FinishReason.FAILED, error=reason)

    def _cancel(self, command: Cancel) -> None:
        sequence = self._live.get(command.id)
        if sequence is None:
            return  # ended already, or never here
        self.counters.cancelled += command.reason != FinishReason.STOP
        self._end(sequence, command.reason, keep_tokens=command.keep_tokens)

    def _forget(self, command: Forget) -> None:
        for sequence in self._live.values():
            if sequence.admit.conversation == command.conversation:
                sequence.is_forgotten = True
        self.counters.forgotten_blocks += self._kv.forget(command.conversation)

    # --- one forward

    def _forward(self, chunks: list[Chunk]) -> Logits:
        """Run all chunks at once; when that fails, one by one, so that only the culprit fails."""
        try:
            return self._runner.run(chunks)
        except Exception as error:
            log.exception("a forward of %d sequences failed; running them one by one", len(chunks))
            if len(chunks) == 1:
                self._fail(chunks[0].sequence, f"the model failed: {error}")
        parts = [part for chunk in chunks if len(chunks) > 1 and (part := self._forward_alone(chunk))]
        sequences = [sequence for part in parts for sequence in part.sequences]
        return Logits(sequences, torch.cat([part.rows for part in parts]) if parts else torch.empty(0, 0))

    def _forward_alone(self, chunk: Chunk) -> Logits | None:
        try:
            return self._runner.run([chunk])
        except Exception as error:
            log.error("sequence %s fails alone: %s", chunk.sequence.id, error)
            self._fail(chunk.sequence, f"the model failed: {error}")
            return None

    def _advance(self, chunks: list[Chunk], logits: Logits) -> None:
        """Book what the forward computed and give every completed sequence its next token."""
        sampled = {s.id: result for s, result in zip(logits.sequences, self._sample(logits), strict=True)}
        for chunk in chunks:
            sequence, result = chunk.sequence, sampled.get(chunk.sequence.id)
            if sequence.state is State.FINISHED:
                continue  # its forward failed
            if result is not None and result.error:
                self._fail(sequence, result.error)
                continue
            self._book(sequence, chunk.num_tokens)
            self._kv.publish(sequence)  # only now: blocks of broken numbers must never be found
            if result is not None:
                self._accept(sequence, result)

    def _sample(self, logits: Logits) -> list[Sampled]:
        rows = [Row(s.admit.sampling, s.token_ids, s.num_prompt) for s in logits.sequences]
        if not rows:
            return []
        try:
            return sample(logits.rows, rows)
        except Exception:
            log.exception("sampling %d rows failed; sampling them one by one", len(rows))
            return [_sample_alone(logits.rows[i : i + 1], row) for i, row in enumerate(rows)]

    def _book(self, sequence: Sequence, num_tokens: int) -> None:
        before = sequence.prompt_done
        sequence.advance(num_tokens)
        self.counters.prefilled_tokens += sequence.prompt_done - before
        if sequence.state is State.PREFILL:
            self._outbox.progress.append(
                PrefillProgress(sequence.id, sequence.prompt_done, sequence.num_prompt)
            )

    def _accept(self, sequence: Sequence, result: Sampled) -> None:
        limit = min(sequence.admit.max_tokens, self._parts.max_context - sequence.num_prompt)
        if limit <= 0:  # a warm-up: the prompt is all there is to do
            self._end(sequence, FinishReason.LENGTH)
            return
        if sequence.state is State.PREFILL:
            sequence.move(State.DECODE, self._clock())
        sequence.token_ids.append(result.token)
        self.counters.generated_tokens += 1
        self._outbox.tokens.append(TokenOut(sequence.id, result.token, result.logprob, list(result.top)))
        if result.token in sequence.admit.stop_ids:
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
        self._outbox.finished.append(sequence)

    def _news_of_positions(self) -> list[tuple[str, int]]:
        """Queue positions that differ from what was said last."""
        positions = [(sequence.id, ahead) for ahead, sequence in enumerate(self._scheduler.waiting)]
        told = set(self._told_positions)
        self._told_positions = positions
        return [position for position in positions if position not in told]


def _sample_alone(logits: torch.Tensor, row: Row) -> Sampled:
    try:
        return sample(logits, [row])[0]
    except Exception as error:
        return Sampled(error=f"sampling failed: {error}")
