"""The JSON of chat completions, whole and in chunks, with every field the specification requires.

Knows shapes only. The order of chunks is `v1.stream`'s.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from chatsite.chat.events import Accepted, Ended
from chatsite.chat.models import State
from chatsite.v1.errors import ApiError, body_of, from_code
from inference.types import FinishReason

X_CACHE = "X-Cache"
X_TRIMMED = "X-Trimmed-Messages"


@dataclass(frozen=True, slots=True)
class Completion:
    """What is equal in every chunk of one answer."""

    id: str
    model: str
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, text: str, ended: Ended, usage: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        choice = {"index": 0, "message": message, "logprobs": None} | reasons_of(ended)
        return self._frame("chat.completion", [choice]) | {"usage": usage}

    def chunk(self, delta: dict[str, Any], ended: Ended | None = None) -> bytes:
        reasons = {"finish_reason": None} if ended is None else reasons_of(ended)
        choice = {"index": 0, "delta": delta, "logprobs": None} | reasons
        return event(self._frame("chat.completion.chunk", [choice]))

    def usage_chunk(self, usage: dict[str, Any]) -> bytes:
        return event(self._frame("chat.completion.chunk", []) | {"usage": usage})

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "system_fingerprint": None,
        }


DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


def event(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def error_event(error: ApiError) -> bytes:
    return event(body_of(error))


def reasons_of(ended: Ended) -> dict[str, Any]:
    """Clients know few finish reasons: an answer that we cut short is `length`, and `stop_reason` says why."""
    if ended.finish_reason == FinishReason.REPETITION:
        return {"finish_reason": FinishReason.LENGTH.value, "stop_reason": FinishReason.REPETITION.value}
    return {"finish_reason": ended.finish_reason}


def usage_of(ended: Ended, num_streamed: int) -> dict[str, Any]:
    """Token counts; a cached answer was not generated, its tokens are those that were sent."""
    counts = ended.counts
    completion = counts.generated_tokens or num_streamed
    return {
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": counts.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": counts.reused_tokens},
    }


def failure_of(ended: Ended) -> ApiError | None:
    """None for a complete answer; every other end is an error, so that no client takes a part for the whole."""
    if ended.state is State.COMPLETE:
        return None
    if ended.state is State.STOPPED:
        return ApiError(500, "cancelled", "The answer was stopped before its end.")
    code = ended.error_code or ended.state.value
    return from_code(code, ended.error_message or "The answer could not be finished.")


def answer_headers(accepted: Accepted | None) -> dict[str, str]:
    """What the cache said, and how many messages of the history the model was not given."""
    if accepted is None or not accepted.cache_outcome:
        return {}
    age = {} if accepted.cache_age_s is None else {"Age": str(accepted.cache_age_s)}
    trimmed = {X_TRIMMED: str(accepted.trimmed_messages)} if accepted.trimmed_messages else {}
    return {X_CACHE: accepted.cache_outcome} | age | trimmed
