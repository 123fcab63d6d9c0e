"""May this request wait? Limits in requests and in prompt tokens, refused at once and with a time to come back.

Knows counts, not contents: the estimate from bytes comes first, so that a refusal costs no tokenising.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inference.errors import ContextLengthExceeded, QueueFull
from inference.types import Segment

# No ordinary text has longer tokens on average: bytes / this is a lower bound of the token count.
MAX_BYTES_PER_TOKEN = 16
FALLBACK_REQUEST_S = 2.0
MIN_RETRY_S, MAX_RETRY_S = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`prefill_tokens_per_s` is measured; 0 until then, and only the fixed limit on tokens counts."""

    max_queue: int
    max_queued_tokens: int
    max_batch: int
    max_output_tokens: int
    max_context: int
    target_ttft_s: float = 60.0
    prefill_tokens_per_s: float = 0.0

    @property
    def queued_tokens(self) -> int:
        """Prompt tokens that may wait: those that are read within the target time, at most the fixed limit."""
        if self.prefill_tokens_per_s <= 0:
            return self.max_queued_tokens
        return min(self.max_queued_tokens, int(self.target_ttft_s * self.prefill_tokens_per_s))


@dataclass(frozen=True, slots=True)
class Load:
    """What is in the engine now. `num_queued` have not been started by the core; `queued_tokens` are still to be
    read, those of prompts that are half read among them."""

    num_queued: int
    num_running: int
    queued_tokens: int
    seconds_per_request: float = FALLBACK_REQUEST_S


def num_waiting(max_batch: int, load: Load) -> int:
    """A request for which a place in the batch is free does not count; below 0 so many places are left."""
    return load.num_queued - max(0, max_batch - load.num_running)


def check_queue(limits: Limits, load: Load, prompt_tokens: int) -> None:
    """Raises QueueFull."""
    waiting = num_waiting(limits.max_batch, load)
    if waiting >= limits.max_queue:
        rounds = (load.num_queued + load.num_running) / limits.max_batch
        message = f"{waiting} requests are waiting, {limits.max_queue} may"
        raise QueueFull(message, retry_after_s=_within_bounds(rounds * load.seconds_per_request))
    # One prompt that is larger than the whole limit may still wait alone.
    num_too_many = load.queued_tokens + prompt_tokens - limits.queued_tokens
    if load.queued_tokens and num_too_many > 0:
        message = f"{load.queued_tokens} prompt tokens are waiting, {limits.queued_tokens} may"
        raise QueueFull(message, retry_after_s=_seconds_to_read(num_too_many, limits, load))


def estimate_tokens(segments: Iterable[Segment]) -> int:
    """Fewer than there will be."""
    return sum(len(segment.text.encode(errors="replace")) for segment in segments) // MAX_BYTES_PER_TOKEN


def check_context(limits: Limits, prompt_tokens: int, *, is_estimate: bool = False) -> None:
    """Raises ContextLengthExceeded when not even one token of an answer would fit."""
    if prompt_tokens + 1 > limits.max_context:
        number = f"at least {prompt_tokens}" if is_estimate else str(prompt_tokens)
        raise ContextLengthExceeded(
            f"the prompt has {number} tokens, the model takes {limits.max_context} with the answer"
        )


def answer_tokens(limits: Limits, prompt_tokens: int, asked: int | None) -> int:
    """How many tokens the answer may have: what was asked for, within the window and the server's cap."""
    room = min(limits.max_context - prompt_tokens, limits.max_output_tokens)
    assert room > 0, "check_context comes first"
    return room if asked is None else min(asked, room)


def _seconds_to_read(num_tokens: int, limits: Limits, load: Load) -> float:
    if limits.prefill_tokens_per_s <= 0:
        return _within_bounds(load.seconds_per_request)
    return _within_bounds(num_tokens / limits.prefill_tokens_per_s)


def _within_bounds(seconds: float) -> float:
    return min(MAX_RETRY_S, max(MIN_RETRY_S, seconds))
