"""What callers hear of an answer, from the queue to its end, and what it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class FinishReason(StrEnum):
    """Why a generation ended. Finished generations never change their reason."""

    STOP = "stop"  # end-of-sequence token or stop string
    LENGTH = "length"  # max_tokens or the end of the window
    REPETITION = "repetition"  # the answer went round in circles
    CANCELLED = "cancelled"  # somebody asked for it
    ORPHANED = "orphaned"  # nobody was attached for orphan_ttl
    FAILED = "failed"  # the engine could not go on; `Done.error_code` says why


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts by source. prompt = reused (of all sources) + prefilled, once it was read.

    `generated_tokens` have text that was looked at; `unseen_tokens` were made beside them: end tokens, and what was
    under way when the answer ended.
    """

    prompt_tokens: int = 0
    reused_head_tokens: int = 0
    reused_prefix_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    peak_kv_bytes: int = 0
    block_seconds: float = 0.0
    reused_shared_tokens: int = 0
    reused_disk_tokens: int = 0
    trimmed_messages: int = 0
    device_seconds: float = 0.0
    unseen_tokens: int = 0

    @property
    def reused_tokens(self) -> int:
        return (
            self.reused_head_tokens
            + self.reused_prefix_tokens
            + self.reused_shared_tokens
            + self.reused_disk_tokens
        )


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds, measured by the engine's monotonic clock. ttft_s runs from acceptance to the first delta."""

    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    ttft_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Queued:
    """Progress, not logged: `position` sequences are ahead."""

    position: int
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Prefill:
    """Progress, not logged: `done` of `total` prompt tokens are in KV."""

    done: int
    total: int
    seq: int = 0


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Natural log-probability of one token by the model itself, before penalties and temperature; `token` is its
    raw bytes, which need not be whole characters. `top` are the likeliest alternatives, best first."""

    token_id: int
    token: bytes
    logprob: float
    top: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """Whole characters, in order; `token_ids` are the ids whose text this is, `logprobs` theirs when asked for."""

    seq: int
    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of every accepted generation."""

    seq: int
    finish_reason: FinishReason
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    error_code: str = ""
    error_message: str = ""


Event = Queued | Prefill | Delta | Done
