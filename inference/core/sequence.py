"""One generation inside the core: its tokens, its blocks, its state and its clock.

Knows which moves between states are allowed and what is counted on the way. Does not know tensors, the
scheduler's choices or the block pool; `kv_cache` fills `blocks`, `loop` appends tokens.
"""

from __future__ import annotations

from enum import StrEnum

from inference.core.conversations import Conversation
from inference.core.drafts import Drafts
from inference.core.messages import Admit, FinishedOut
from inference.core.prefix import Salts
from inference.core.reuse import Source


class State(StrEnum):
    """Where a sequence is. `PREFILL` still reads tokens that are known; `DECODE` makes one new token a step."""

    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    FINISHED = "finished"


ALLOWED_MOVES: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.PREFILL, State.FINISHED}),
    State.PREFILL: frozenset({State.DECODE, State.WAITING, State.FINISHED}),
    State.DECODE: frozenset({State.WAITING, State.FINISHED}),
    State.FINISHED: frozenset(),
}


class Sequence:
    """Mutable state of one admitted request. `token_ids` is the prompt followed by what was generated."""

    __slots__ = (
        "_charged_at",
        "_since",
        "_spent_s",
        "admit",
        "arrival",
        "arrived_at",
        "block_seconds",
        "blocks",
        "conversation",
        "device_seconds",
        "drafts",
        "error",
        "finish_reason",
        "is_forgotten",
        "num_borrowed",
        "num_computed",
        "num_prompt",
        "num_published",
        "peak_blocks",
        "prompt_done",
        "reused",
        "salts",
        "state",
        "token_ids",
    )  # fmt: skip

    def __init__(self, admit: Admit, arrival: int, now: float) -> None:
        self.admit = admit
        self.arrival = arrival  # never changes: a preempted sequence keeps its place
        self.arrived_at = now
        self.state = State.WAITING
        self.finish_reason = ""
        self.error = ""
        self.token_ids = list(admit.prompt_ids)
        self.num_prompt = len(admit.prompt_ids)
        self.num_computed = 0  # tokens whose KV is written
        self.num_borrowed = 0  # of those, the ones that were reused when it last got its blocks
        self.blocks: list[int] = []
        self.num_published = 0  # leading blocks that the prefix cache knows
        self.is_forgotten = False
        self.salts = Salts(admit.salt)
        self.conversation: Conversation | None = None  # from its first blocks to its end, where it has one
        self.drafts: Drafts | None = None  # since it first tried one
        self.reused = dict.fromkeys(Source, 0)  # tokens, when it first got its blocks
        self.prompt_done = 0  # most prompt tokens that were ever in KV; a preemption does not take it back
        self.peak_blocks = 0
        self.block_seconds = 0.0
        self.device_seconds = 0.0
        self._spent_s = dict.fromkeys(State, 0.0)
        self._since = now
        self._charged_at = now

    @property
    def id(self) -> str:
        return self.admit.id

    @property
    def num_generated(self) -> int:
        return len(self.token_ids) - self.num_prompt

    @property
    def num_uncomputed(self) -> int:
        return len(self.token_ids) - self.num_computed

    @property
    def is_background(self) -> bool:
        return self.admit.is_background

    @property
    def is_warm_up(self) -> bool:
        """Whether it reads ahead of a question of its conversation."""
        return self.is_background and not self.admit.max_tokens and bool(self.admit.conversation)

    @property
    def is_offline(self) -> bool:
        return self.admit.is_offline

    def move(self, state: State, now: float) -> None:
        """Change the state and book the time spent in the old one."""
        if state not in ALLOWED_MOVES[self.state]:
            raise AssertionError(f"sequence {self.id} may not move from {self.state} to {state}")
        self._spent_s[self.state] += now - self._since
        self._since = now
        self.state = state

    def charge_blocks(self, now: float) -> None:
        """Book the block-seconds of the blocks held until now. Call before `blocks` changes its length."""
        self.block_seconds += len(self.blocks) * (now - self._charged_at)
        self._charged_at = now

    def advance(self, num_tokens: int) -> None:
        """The KV of the next `num_tokens` tokens is written."""
        self.num_computed += num_tokens
        self.prompt_done = max(self.prompt_done, min(self.num_computed, self.num_prompt))

    def report(self, block_bytes: int) -> FinishedOut:
        """What the front hears about a finished sequence."""
        return FinishedOut(
            id=self.id,
            reason=self.finish_reason,
            error=self.error,
            prompt_tokens=self.num_prompt,
            reused_head_tokens=self.reused[Source.HEAD],
            reused_prefix_tokens=self.reused[Source.PREFIX],
            reused_shared_tokens=self.reused[Source.SHARED],
            reused_disk_tokens=self.reused[Source.DISK],
            prefilled_tokens=max(0, self.prompt_done - sum(self.reused.values())),
            generated_tokens=self.num_generated,
            peak_kv_bytes=self.peak_blocks * block_bytes,
            block_seconds=self.block_seconds,
            device_seconds=self.device_seconds,
            queue_s=self._spent_s[State.WAITING],
            prefill_s=self._spent_s[State.PREFILL],
            decode_s=self._spent_s[State.DECODE],
        )
