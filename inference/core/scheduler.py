"""What runs in the next step.

Running sequences decode first, one token each and what they draft behind it, so no stream stops while a long prompt
is read; the rest of the token budget goes to prefill chunks. Knows counts, blocks and order; no tensors, no sampling,
no wire. Who comes first is decided by `classes`, then `fairness`, then `policy`; how much is read in one step by
`pacing`; who drafts by `speculation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inference.core.chunk import Chunk, num_tokens_of
from inference.core.classes import Classes, LatencyClass
from inference.core.fairness import FairShares
from inference.core.kv_cache import KvCache
from inference.core.limits import Limits
from inference.core.pacing import MIN_PREFILL_TOKENS, Pacer, StepCost
from inference.core.policy import policy_of
from inference.core.queue_order import in_order
from inference.core.second_tier import SecondTier
from inference.core.sequence import Sequence, State
from inference.core.speculation import Speculation
from inference.core.twins import is_being_computed

# An offline sequence is promoted after the waiting time of so many priority levels.
OFFLINE_PATIENCE_LEVELS = 6
# How often an otherwise idle loop looks whether a sequence has been prepared.
PREPARING_POLL_S = 0.001


class Scheduler:
    """The waiting and the running sequences of one core."""

    def __init__(self, kv: KvCache, limits: Limits) -> None:
        self.waiting: list[Sequence] = []  # as last ordered
        self.running: list[Sequence] = []  # as they were started
        self._kv = kv
        self._limits = limits
        self._policy = policy_of(limits.policy, kv, limits.ageing_s)
        self._classes = Classes(OFFLINE_PATIENCE_LEVELS * limits.ageing_s)
        self._step = StepCost(0.0, 0, 0, 0)
        self._hopeless: list[Sequence] = []
        self._is_unordered = False
        self._too_few: int | None = None  # blocks that could be had when the first in order needed more
        self.second_tier: SecondTier | None = None  # where what a sequence lacks may be kept
        self.speculation: Speculation | None = None  # who drafts
        self.is_prepared: Callable[[Sequence], bool] = lambda _: (
            True
        )  # whether all that it needs beside KV is there
        self.reset()

    def reset(self) -> None:
        """Forget what was measured and counted: the first steps of all are slow for reasons that never come again."""
        self.num_preemptions = 0
        self.pacer = Pacer(self._limits.target_tpot_s, self._limits.step_tokens)
        self.step_target_tokens = self._limits.step_tokens
        self._shares = FairShares()

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    @property
    def lane_tokens(self) -> int | None:
        """What a micro-batch of the lane may take of the next step while sequences run; None when none does."""
        return self.step_target_tokens if self.running else None

    @property
    def num_waiting_offline(self) -> int:
        return sum(1 for sequence in self.waiting if sequence.is_offline)

    @property
    def num_waiting_for_blocks(self) -> int:
        """Everybody who waits, while the first in order does not fit into the pool."""
        return len(self.waiting) if self._is_short_of_blocks() else 0

    @property
    def num_waiting_for_seats(self) -> int:
        """Everybody who waits, while there are blocks but no place in the batch."""
        return 0 if self._is_short_of_blocks() or self._can_start() else len(self.waiting)

    def add(self, sequence: Sequence) -> None:
        """A new sequence joins the queue; its place there is found in the next step."""
        self._shares.arrive(sequence)
        self._enqueue(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out of whichever queue it is in; its blocks are the caller's business."""
        (self.waiting if sequence.state is State.WAITING else self.running).remove(sequence)
        self._shares.leave(sequence)
        self._classes.leave(sequence)

    def rest_s(self, now: float) -> float:
        """How long nothing can be done unless a command arrives: all may wait for company, or for the disk."""
        if self.running:
            return 0.0
        if self.waiting and not any(map(self.is_prepared, self.waiting)):
            return PREPARING_POLL_S
        rest_s = self._gathering_s(now)
        if not rest_s and self.waiting and self.second_tier is not None:
            return self.second_tier.rest_s(self.waiting)
        return rest_s

    def schedule(self, now: float, lane_tokens: int = 0) -> list[Chunk]:
        """The chunks of this step, decode first. The lane has spent `lane_tokens` of the budget already."""
        if self.second_tier is not None:
            self.second_tier.begin_step(self.waiting)
        chunks = self._decode(now)
        self._order_queue(now)  # with those who have just been preempted
        budget = self._prefill_budget(chunks, lane_tokens)
        chunks += self._prefill(budget, now)
        # Who is started may have taken the seat of somebody who had a chunk.
        chunks = [chunk for chunk in chunks if chunk.sequence.state is not State.WAITING]
        for chunk in chunks:
            self._shares.charge(chunk.sequence, chunk.num_known)
        decode_rows = num_tokens_of(chunk for chunk in chunks if chunk.sequence.state is State.DECODE)
        self._step = StepCost(0.0, num_tokens_of(chunks) - decode_rows, decode_rows, lane_tokens)
        return chunks

    def on_step(self, seconds: float) -> None:
        """The step that was scheduled last took so long, the lane's part included."""
        step = self._step
        self.pacer.observe(StepCost(seconds, step.prefill_tokens, step.decode_rows, step.lane_tokens))

    def accept_draft(self, sequence: Sequence, num_tokens: int) -> None:
        """So many guesses of a sequence were right: it has got them in the step, too."""
        self._shares.charge(sequence, num_tokens)

    def take_hopeless(self) -> list[Sequence]:
        """Waiting sequences that the whole pool has no room for; the caller ends them."""
        hopeless, self._hopeless = self._hopeless, []
        return hopeless

    # --- who decodes, and how much is read

    def _decode(self, now: float) -> list[Chunk]:
        chunks = []
        for sequence in sorted(self.running, key=self._classes.place):
            # An earlier one in this loop may have preempted it.
            if sequence.state is State.DECODE and self._may_run(sequence) and self._make_room(sequence, now):
                chunks.append(Chunk(sequence, 1))
        decoding = [chunk for chunk in chunks if chunk.sequence.state is State.DECODE]
        return [self._with_draft(chunk, now) for chunk in decoding]

    def _with_draft(self, chunk: Chunk, now: float) -> Chunk:
        """Guesses take blocks only where nobody misses them: those that a newcomer would have to leave."""
        sequence = chunk.sequence
        draft = self.speculation.draft(sequence, len(self.running)) if self.speculation else ()
        if draft and not self._kv.extend(sequence, now, 1 + len(draft), self._watermark):
            draft = draft[: self._kv.room(sequence) - 1]
        return Chunk(sequence, 1 + len(draft), draft)

    def _make_room(self, sequence: Sequence, now: float) -> bool:
        """A block for the next token, taken from the last in order where none is left; False if that is itself."""
        while not self._kv.extend(sequence, now):
            last = max(self.running, key=self._classes.place)
            self._preempt(last, now)
            if last is sequence:
                return False
        return True

    def _prefill_budget(self, decoding: list[Chunk], lane_tokens: int) -> int:
        """A full step, unless somebody reads along: then as much as keeps the pace. Offline streams have no reader."""
        decode_rows = num_tokens_of(decoding)
        room = max(self._limits.step_tokens - decode_rows - lane_tokens, MIN_PREFILL_TOKENS)
        if all(chunk.sequence.is_offline for chunk in decoding):
            self.step_target_tokens = self._limits.step_tokens
            return room
        self.step_target_tokens = self.pacer.budget(decode_rows, lane_tokens)
        return min(room, self.step_target_tokens)

    # --- who starts

    def _order_queue(self, now: float) -> None:
        """Who starts first, found anew when it matters: an order may cost a look into the cache for many prompts."""
        reading = [sequence for sequence in self.running if sequence.state is State.PREFILL]
        self._is_unordered |= self._classes.promote([*reading, *self.waiting], now)
        if not self._is_unordered and (self._is_short_of_blocks() or not self._can_start()):
            return
        shares = self._shares if self._limits.fair_shares else None
        self.waiting = in_order(self.waiting, self._classes, shares, self._policy, now)
        self._is_unordered = False

    def _is_short_of_blocks(self) -> bool:
        """Whether there are no more than were too few for the first in order."""
        return self._too_few is not None and self._kv.pool.num_available <= self._too_few

    def _prefill(self, budget: int, now: float) -> list[Chunk]:
        """Class by class: who has started reads on, then who waits starts, as far as the budget goes.

        Nobody overtakes a waiting sequence that does not fit, not even one of a lower class: it must get its turn.
        """
        chunks: list[Chunk] = []
        # As they wait now: who gives way below may still have a chunk of this step, and starts in the next at best.
        starting = list(self.waiting) if self._can_start() and not self._gathering_s(now) else []
        for own_class in LatencyClass:
            for sequence in [s for s in self.running if self._reads(s, own_class)]:
                chunks += _chunk(sequence, budget - num_tokens_of(chunks))
            for sequence in [s for s in starting if self._classes.of(s) is own_class]:
                if num_tokens_of(chunks) >= budget:
                    return chunks
                if not self._is_ready(sequence, now):
                    continue
                if not self._start(sequence, now):
                    starting = []
                    break
                chunks += _chunk(sequence, budget - num_tokens_of(chunks))
        return chunks

    def _gathering_s(self, now: float) -> float:
        if self.running:
            return 0.0
        return self._limits.gathering.left_s(self.waiting, self._num_seats(self.waiting), now)

    def _reads(self, sequence: Sequence, own_class: LatencyClass) -> bool:
        is_reading = sequence.state is State.PREFILL and self._classes.of(sequence) is own_class
        return is_reading and self._may_run(sequence)

    def _is_ready(self, sequence: Sequence, now: float) -> bool:
        """Whether a waiting sequence could use a seat now. While it could not, others may pass it.

        It is worth waiting for those who surely go on: who is of a lower class may stand still as long as people come.
        """
        if not self.is_prepared(sequence):
            return False
        own_class = self._classes.of(sequence)
        reading = [other for other in self.running if other.state is State.PREFILL]
        if is_being_computed(sequence, [s for s in reading if self._classes.of(s) <= own_class], self._kv):
            return False
        return self.second_tier is None or self.second_tier.is_ready(sequence, now)

    def _start(self, sequence: Sequence, now: float) -> bool:
        """Give a waiting sequence a seat and blocks, if need be those of lower classes."""
        if not self._may_run(sequence):
            return False
        own_class = self._classes.of(sequence)
        while len(self.running) >= self._num_seats([sequence]) or not self._acquire(sequence, now):
            lower = [other for other in self.running if self._classes.of(other) > own_class]
            if not lower:
                return False
            self._preempt(max(lower, key=self._classes.place), now)
        self.waiting.remove(sequence)
        sequence.move(State.PREFILL, now)
        self.running.append(sequence)
        self._shares.start(sequence)
        return True

    def _acquire(self, sequence: Sequence, now: float) -> bool:
        """Blocks, with one left for each that runs: without this watermark a newcomer would be preempted at once."""
        is_taken = self._kv.acquire(sequence, now, reserve=self._watermark)
        self._too_few = None if is_taken else self._kv.pool.num_available
        if not is_taken and not self.running:
            self._hopeless.append(sequence)
        return is_taken

    @property
    def _watermark(self) -> int:
        return sum(1 for sequence in self.running if not sequence.is_background)

    def _can_start(self) -> bool:
        """Whether there is a seat for the first in order, or somebody of a lower class who may have to give one up."""
        if not self.waiting or len(self.running) < self._num_seats([]):
            return bool(self.waiting)
        first = self._classes.of(self.waiting[0])
        return any(self._classes.of(other) > first for other in self.running)

    def _num_seats(self, newcomers: Iterable[Sequence]) -> int:
        """Fewer while an interactive sequence runs, so that its tokens come faster."""
        together = [*self.running, *newcomers]
        if self._limits.interactive_batch and any(not (s.is_offline or s.is_background) for s in together):
            return min(self._limits.interactive_batch, self._limits.max_batch)
        return self._limits.max_batch

    def _may_run(self, sequence: Sequence) -> bool:
        """Background work runs only while nobody else is here."""
        return not sequence.is_background or all(s.is_background for s in [*self.running, *self.waiting])

    # --- who goes back

    def _preempt(self, sequence: Sequence, now: float) -> None:
        self._kv.preempt(sequence, now)
        self.running.remove(sequence)
        sequence.move(State.WAITING, now)
        self._shares.wait(sequence)
        self._enqueue(sequence)
        self.num_preemptions += 1

    def _enqueue(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)
        self._is_unordered = True


def _chunk(sequence: Sequence, budget: int) -> list[Chunk]:
    """As much of the sequence as the budget has room for; nothing when it is used up."""
    return [Chunk(sequence, min(sequence.num_uncomputed, budget))] if budget > 0 else []
