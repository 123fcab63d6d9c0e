"""May this request wait? Limits in requests and in prompt tokens, refused at once and with a time to come back.

Knows counts, not contents: the estimate from bytes comes first, so that a refusal costs no tokenising.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference.errors import ContextLengthExceeded, QueueFull

# No ordinary text has longer tokens on average: bytes / this is a lower bound of the token count.
MAX_BYTES_PER_TOKEN = 16
FALLBACK_REQUEST_S = 2.0
MIN_RETRY_S, MAX_RETRY_S = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class Limits:
    max_queue: int
    max_queued_tokens: int
    max_batch: int
    max_output_tokens: int
    max_context: int


@dataclass(frozen=True, slots=True)
class Load:
    """What is in the engine now. `queued` have not been started by the core."""

    num_queued: int
    num_running: int
    queued_tokens: int
    seconds_per_request: float = FALLBACK_REQUEST_S


def check_queue(limits: Limits, load: Load, prompt_tokens: int) -> None:
    """Raises QueueFull. A request for which a place in the batch is free does not count as waiting."""
    num_waiting = load.num_queued - max(0, limits.max_batch - load.num_running)
    if num_waiting >= limits.max_queue:
        raise QueueFull(f"{num_waiting} requests are waiting", retry_after_s=_retry_after(limits, load))
    # One prompt that is larger than the whole limit may still wait alone.
    if load.queued_tokens and load.queued_tokens + prompt_tokens > limits.max_queued_tokens:
        message = f"{load.queued_tokens} prompt tokens are waiting, {limits.max_queued_tokens} are allowed"
        raise QueueFull(message, retry_after_s=_retry_after(limits, load))


def estimate_tokens(num_bytes: int) -> int:
    """Fewer than there will be."""
    return num_bytes // MAX_BYTES_PER_TOKEN


def check_context(limits: Limits, prompt_tokens: int) -> None:
    """Raises ContextLengthExceeded when not even one token of an answer would fit."""
    if prompt_tokens + 1 > limits.max_context:
        raise ContextLengthExceeded(
            f"the prompt has at least {prompt_tokens} tokens, the model takes {limits.max_context} with the answer"
        )


def answer_tokens(limits: Limits, prompt_tokens: int, asked: int | None) -> int:
    """How many tokens the answer may have: what was asked for, within the window and the server's cap."""
    room = min(limits.max_context - prompt_tokens, limits.max_output_tokens)
    return room if asked is None else min(asked, room)


def _retry_after(limits: Limits, load: Load) -> float:
    rounds = (load.num_queued + load.num_running) / limits.max_batch
    return min(MAX_RETRY_S, max(MIN_RETRY_S, rounds * load.seconds_per_request))
