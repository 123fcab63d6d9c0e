"""What `reply` says while an answer is made: the same events for a hit and a miss, for every door.

Knows no transport. Consumers turn these into frames, `/v1` into SSE lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from chatsite.chat.models import Origin, State
from inference.types import TokenLogprob


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens by source. reused = kept KV that was reused; the semantic cache has none.

    `trimmed_messages` of the history were left out, because it is longer than the model's window.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    trimmed_messages: int = 0


@dataclass(frozen=True, slots=True)
class Durations:
    """Milliseconds. ttft runs from acceptance to the first delta; delivery is what the web added."""

    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    delivery_ms: float = 0.0
    ttft_ms: float = 0.0

    @property
    def making_ms(self) -> float:
        """What another one will not wait for when the answer is stored; who followed another's has no other figure."""
        return self.prefill_ms + self.decode_ms + self.delivery_ms


@dataclass(frozen=True, slots=True)
class Accepted:
    """The message is durable. Ids are None for `/v1`, which stores no text.

    A `/v1` question is accepted after the look-up, so its door can say in the headers what the cache said:
    hit-exact, hit-semantic, stale-exact, stale-semantic, miss or bypass.
    """

    generation: UUID
    conversation: UUID | None = None
    user_message: UUID | None = None
    answer: UUID | None = None
    cache_outcome: str = ""
    cache_age_s: int | None = None
    trimmed_messages: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """`position` answers are ahead in the engine's queue."""

    generation: UUID
    position: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The model reads the prompt: `done` of `total` tokens."""

    generation: UUID
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Text in order. `seq` numbers the engine's events; `offset` is the number of characters before this text.

    `logprobs` are those of its tokens, when they were asked for.
    """

    generation: UUID
    seq: int
    offset: int
    text: str
    num_tokens: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of every accepted message, after the answer was stored."""

    generation: UUID
    state: State
    finish_reason: str
    origin: Origin
    counts: Counts = field(default_factory=Counts)
    durations: Durations = field(default_factory=Durations)
    model: str = ""
    cache_age_s: int | None = None
    cache_is_stale: bool = False
    error_code: str = ""
    error_message: str = ""
    is_retryable: bool = False


ReplyEvent = Accepted | Waiting | Reading | Piece | Ended
