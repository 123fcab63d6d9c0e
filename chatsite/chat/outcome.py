"""How an answer ended, from the engine's or the cache's last word to what is stored and shown.

Pure translation: the engine's finish reasons and errors become states, codes and refusals here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from chatsite.chat.events import Counts, Durations
from chatsite.chat.models import Origin, State
from chatsite.errors import ReplyRefused
from inference.errors import (
    ContextLengthExceeded,
    EngineError,
    InvalidGrammar,
    InvalidRequest,
    NotSupported,
    Unauthenticated,
)
from inference.types import Done, FinishReason, Timings, Usage

STATES = {
    FinishReason.STOP: State.COMPLETE,
    FinishReason.LENGTH: State.COMPLETE,
    FinishReason.REPETITION: State.COMPLETE,
    FinishReason.CANCELLED: State.STOPPED,
    FinishReason.ORPHANED: State.INTERRUPTED,
    FinishReason.FAILED: State.FAILED,
}
# Asking the same again can't help.
FINAL_CODES = frozenset({"context_length_exceeded", "invalid_grammar", "invalid_request", "not_supported"})
STATUSES: dict[type[EngineError], int] = dict.fromkeys(
    (ContextLengthExceeded, InvalidGrammar, InvalidRequest, NotSupported), 400
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an answer before it is stored. `refusal` is set when the engine never took the question."""

    state: State
    finish_reason: str = ""
    error_code: str = ""
    error_message: str = ""
    origin: Origin = Origin.MODEL
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    cache_entry: int | None = None
    cache_age_s: int | None = None
    cache_is_stale: bool = False
    is_engine_busy: bool = False  # the engine may still be at it and has to be told
    refusal: ReplyRefused | None = None
    has_usage: bool = True  # False: what the engine took is not known yet, and the ledger's row is owed
    # What the answer took whoever it was made for first, as far as that is known; `spared_by` names their generation.
    spared: Usage = field(default_factory=Usage)
    spared_ms: float = 0.0
    spared_by: UUID | None = None
    model: str = ""  # set where the generation was not begun in the engine, which says it otherwise

    @property
    def is_retryable(self) -> bool:
        return self.state in (State.FAILED, State.INTERRUPTED) and self.error_code not in FINAL_CODES

    @property
    def is_whole(self) -> bool:
        """Ended by itself, by a model that was given the whole history: good enough for whoever asks the same."""
        return self.finish_reason == FinishReason.STOP and not self.usage.trimmed_messages

    @property
    def counts(self) -> Counts:
        usage = self.usage
        return Counts(
            usage.prompt_tokens,
            usage.reused_tokens,
            usage.prefilled_tokens,
            usage.generated_tokens,
            usage.trimmed_messages,
        )

    def durations(self, ttft_ms: float, total_ms: float) -> Durations:
        """`total_ms` from acceptance to the end; what the engine does not account for is delivery."""
        queue_ms, prefill_ms = self.timings.queue_s * 1000, self.timings.prefill_s * 1000
        decode_ms = self.timings.decode_s * 1000
        delivery_ms = max(0.0, total_ms - queue_ms - prefill_ms - decode_ms)
        return Durations(queue_ms, prefill_ms, decode_ms, delivery_ms, ttft_ms)

    def columns(self, durations: Durations) -> dict[str, Any]:
        """The columns of `Generation` that are known now."""
        usage = self.usage
        named = {"model": self.model} if self.model else {}
        return named | {
            "origin": self.origin,
            "cache_entry": self.cache_entry,
            "cache_age_s": self.cache_age_s,
            "cache_is_stale": self.cache_is_stale,
            "prompt_tokens": usage.prompt_tokens,
            "reused_head_tokens": usage.reused_head_tokens,
            "reused_prefix_tokens": usage.reused_prefix_tokens,
            "reused_shared_tokens": usage.reused_shared_tokens,
            "reused_disk_tokens": usage.reused_disk_tokens,
            "trimmed_messages": usage.trimmed_messages,
            "prefilled_tokens": usage.prefilled_tokens,
            "generated_tokens": usage.generated_tokens,
            "queue_ms": durations.queue_ms,
            "prefill_ms": durations.prefill_ms,
            "decode_ms": durations.decode_ms,
            "ttft_ms": durations.ttft_ms,
        }


def of_done(done: Done) -> Outcome:
    return Outcome(
        state=STATES[done.finish_reason],
        finish_reason=done.finish_reason.value,
        error_code=done.error_code,
        error_message=done.error_message,
        usage=done.usage,
        timings=done.timings,
    )


def of_refusal(error: EngineError) -> Outcome:
    """The engine did not take the question."""
    code = "engine_unavailable" if isinstance(error, Unauthenticated) else error.code
    status = STATUSES.get(type(error), 503)
    refusal = ReplyRefused(code, error.message, status, error.retry_after_s)
    return Outcome(State.FAILED, FinishReason.FAILED.value, code, error.message, refusal=refusal)


def of_loss(error: EngineError) -> Outcome:
    """The engine took the question and can't be asked about it any more."""
    return Outcome(State.INTERRUPTED, "interrupted", error.code, error.message, has_usage=False)


def not_cached() -> Outcome:
    message = "The answer is not in the cache, and the request asked for nothing else."
    refusal = ReplyRefused("not_cached", message, 504, is_retryable=False)
    return Outcome(State.FAILED, FinishReason.FAILED.value, "not_cached", message, refusal=refusal)


CANCELLED = Outcome(State.STOPPED, FinishReason.CANCELLED.value, has_usage=False)
# Ended by another hand while the engine may be at it.
STOPPED = replace(CANCELLED, is_engine_busy=True)
TIMED_OUT = Outcome(
    State.FAILED,
    FinishReason.FAILED.value,
    "deadline_exceeded",
    "The answer took too long.",
    is_engine_busy=True,
    has_usage=False,
)
BROKEN = Outcome(
    State.FAILED,
    FinishReason.FAILED.value,
    "internal_error",
    "Something went wrong on the server.",
    is_engine_busy=True,
    has_usage=False,
)
