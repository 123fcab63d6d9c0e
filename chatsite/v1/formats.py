"""What all shapes of answers have in common: lines of a stream, reasons, counts and headers.

Knows shapes only. The order of lines is `v1.stream`'s; `v1.chat_form` and its like know what is in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from chatsite.chat.events import Accepted, Ended, Piece
from chatsite.v1.answers import Answer
from chatsite.v1.errors import ApiError, body_of
from inference.types import EngineInfo, FinishReason

X_CACHE = "X-Cache"
X_TRIMMED = "X-Trimmed-Messages"


class Form(Protocol):
    """The shape in which a client reads its answers: whole, or line by line. One object serves one response."""

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]: ...

    def begin(self) -> list[bytes]:
        """Before the first text."""

    def piece(self, index: int, piece: Piece) -> list[bytes]:
        """Text of answer `index`; nothing while it may become something else."""

    def end(self, index: int, ended: Ended) -> list[bytes]:
        """Answer `index` is complete."""

    def finish(self, answers: Sequence[Answer]) -> list[bytes]:
        """All are."""

    def fail(self, error: ApiError) -> bytes:
        """One of them is not, and no more lines follow."""


PIECE_CHARS = 256
DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


def event(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def error_event(error: ApiError) -> bytes:
    return event(body_of(error))


def fingerprint_of(info: EngineInfo) -> str:
    """Tells clients with a seed whether the model behind it is the same: it changes with the engine's revision."""
    return "fp_" + hashlib.sha256(info.revision.encode()).hexdigest()[:12]


def pieces_of(arguments: str) -> list[str]:
    """Of a call, as clients that show them while they come like to read them."""
    return [arguments[at : at + PIECE_CHARS] for at in range(0, len(arguments), PIECE_CHARS)]


def reasons_of(ended: Ended, num_calls: int = 0) -> dict[str, Any]:
    """Clients know few finish reasons: an answer that we cut short is `length`, and `stop_reason` says why."""
    if num_calls and ended.finish_reason == FinishReason.STOP:
        return {"finish_reason": "tool_calls"}
    if ended.finish_reason == FinishReason.REPETITION:
        return {"finish_reason": FinishReason.LENGTH.value, "stop_reason": FinishReason.REPETITION.value}
    return {"finish_reason": ended.finish_reason}


def usage_of(answers: Sequence[Answer], num_choices: int) -> dict[str, Any]:
    """Token counts. The choices of one prompt share it: it is counted once, and so is what was reused of it."""
    prompts = [answers[start : start + num_choices] for start in range(0, len(answers), num_choices)]
    num_prompt = sum(max(answer.counts.prompt_tokens for answer in choices) for choices in prompts)
    num_reused = sum(min(answer.counts.reused_tokens for answer in choices) for choices in prompts)
    num_answer = sum(answer.num_tokens for answer in answers)
    return {
        "prompt_tokens": num_prompt,
        "completion_tokens": num_answer,
        "total_tokens": num_prompt + num_answer,
        "prompt_tokens_details": {"cached_tokens": num_reused},
    }


def answer_headers(accepted: Accepted | None) -> dict[str, str]:
    """What the cache said, and how many messages of the history the model was not given."""
    if accepted is None or not accepted.cache_outcome:
        return {}
    age = {} if accepted.cache_age_s is None else {"Age": str(accepted.cache_age_s)}
    trimmed = {X_TRIMMED: str(accepted.trimmed_messages)} if accepted.trimmed_messages else {}
    return {X_CACHE: accepted.cache_outcome} | age | trimmed
