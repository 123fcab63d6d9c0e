"""What runs in the next step.

Running sequences decode first, one token each, so no stream stops while a long prompt is read; the rest of the
token budget goes to prefill chunks. Knows counts, blocks and order; no tensors, no sampling, no wire.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference.core.kv_cache import KvCache
from inference.core.policy import Policy, first_come
from inference.core.sequence import Sequence, State

# Even when decoding and the lane use up the budget, prefill goes on by this much: nobody starves.
MIN_PREFILL_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Limits:
    max_batch: int
    step_tokens: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next `num_tokens` tokens of a sequence go through the model."""

    sequence: Sequence
    num_tokens: int

    @property
    def is_last(self) -> bool:
        """Whether this chunk ends at the newest token, so that its logits give the next one."""
        return self.num_tokens == self.sequence.num_uncomputed


class Scheduler:
    """The waiting and the running sequences of one core."""

    def __init__(self, kv: KvCache, limits: Limits, policy: Policy = first_come) -> None:
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.num_preemptions = 0
        self._kv = kv
        self._limits = limits
        self._policy = policy

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)
        self.waiting.sort(key=self._policy)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out of whichever queue it is in; its blocks are the caller's business."""
        (self.waiting if sequence.state is State.WAITING else self.running).remove(sequence)

    def schedule(self, now: float, spent_tokens: int = 0) -> list[Chunk]:
        """The chunks of this step, decode first. `spent_tokens` of the budget went elsewhere already."""
        self.running.sort(key=self._policy)
        chunks = self._decode(now)
        budget = max(self._limits.step_tokens - len(chunks) - spent_tokens, MIN_PREFILL_TOKENS)
        for sequence in self.running:
            if sequence.state is State.PREFILL and budget > 0 and self._may_run(sequence):
                chunks.append(Chunk(sequence, min(sequence.num_uncomputed, budget)))
                budget -= chunks[-1].num_tokens
        while budget > 0:
            admitted = self._admit_next(now)
            if admitted is None:
                break
            chunks.append(Chunk(admitted, min(admitted.num_uncomputed, budget)))
            budget -= chunks[-1].num_tokens
        return chunks

    def _decode(self, now: float) -> list[Chunk]:
        chunks = []
        for sequence in list(self.running):
            # An earlier one in this loop may have preempted it.
            if sequence.state is State.DECODE and self._may_run(sequence) and self._make_room(sequence, now):
                chunks.append(Chunk(sequence, 1))
        return chunks

    def _make_room(self, sequence: Sequence, now: float) -> bool:
        """A block for the next token, taken from the last in order where none is left; False if that is itself."""
        while not self._kv.extend(sequence, now):
            last = max(self.running, key=self._policy)
            self._preempt(last, now)
            if last is sequence:
                return False
        return True

    def _admit_next(self, now: float) -> Sequence | None:
        """Start the first waiting sequence. Nobody overtakes it while it does not fit: it must get its turn."""
        if not self.waiting or not self._may_run(self.waiting[0]):
            return None
        sequence = self.waiting[0]
        while not self._has_seat() or not self._kv.acquire(sequence, now, reserve=self._watermark()):
            background = [other for other in self.running if other.is_background]
            if sequence.is_background or not background:
                return None
            self._preempt(max(background, key=self._policy), now)
        self.waiting.remove(sequence)
        sequence.move(State.PREFILL, now)
        self.running.append(sequence)
        return sequence

    def _may_run(self, sequence: Sequence) -> bool:
        """Background work runs only while nobody else is here."""
        return not sequence.is_background or all(s.is_background for s in [*self.running, *self.waiting])

    def _has_seat(self) -> bool:
        return len(self.running) < self._limits.max_batch

    def _watermark(self) -> int:
        """Blocks left for running sequences to grow into; without it a newcomer would be preempted at once."""
        return sum(1 for sequence in self.running if not sequence.is_background)

    def _preempt(self, sequence: Sequence, now: float) -> None:
        self._kv.preempt(sequence, now)
        self.running.remove(sequence)
        sequence.move(State.WAITING, now)
        self.add(sequence)
        self.num_preemptions += 1
