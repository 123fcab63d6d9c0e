"""The JSON of chat completions, whole and in chunks, with every field the specification requires.

Knows shapes only. A role chunk for every choice; content chunks with `finish_reason` null; an empty delta with the
reason; with `include_usage` a chunk without choices; `[DONE]`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chatsite.chat.events import Ended, Piece
from chatsite.v1 import formats
from chatsite.v1.answers import Answer
from chatsite.v1.errors import ApiError
from chatsite.v1.logprobs import chat_logprobs
from inference.types import TokenLogprob


@dataclass(frozen=True, slots=True)
class ChatForm:
    """What is equal in every chunk of one response. Satisfies `formats.Form`."""

    id: str
    model: str
    fingerprint: str
    num_choices: int = 1
    has_logprobs: bool = False
    includes_usage: bool = False
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        choices = [self._choice(index, answer) for index, answer in enumerate(answers)]
        return self._frame("chat.completion", choices) | {"usage": self._usage(answers)}

    def begin(self) -> list[bytes]:
        delta = {"role": "assistant", "content": "", "refusal": None}
        return [self._chunk(index, delta) for index in range(self.num_choices)]

    def piece(self, index: int, piece: Piece) -> bytes:
        return self._chunk(index, {"content": piece.text}, self._logprobs(piece.logprobs))

    def end(self, index: int, ended: Ended) -> list[bytes]:
        return [self._chunk(index, {}, reasons=formats.reasons_of(ended))]

    def finish(self, answers: Sequence[Answer]) -> list[bytes]:
        if not self.includes_usage:
            return [formats.DONE]
        usage = self._frame("chat.completion.chunk", []) | {"usage": self._usage(answers)}
        return [formats.event(usage), formats.DONE]

    def fail(self, error: ApiError) -> bytes:
        return formats.error_event(error)

    def _choice(self, index: int, answer: Answer) -> dict[str, Any]:
        assert answer.ended is not None
        message: dict[str, Any] = {
            "role": "assistant",
            "content": answer.text,
            "refusal": None,
            "annotations": [],
        }
        choice: dict[str, Any] = {
            "index": index,
            "message": message,
            "logprobs": self._logprobs(answer.logprobs),
        }
        return choice | formats.reasons_of(answer.ended)

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        logprobs: dict[str, Any] | None = None,
        reasons: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": logprobs}
        choice |= reasons or {"finish_reason": None}
        return formats.event(self._frame("chat.completion.chunk", [choice]))

    def _logprobs(self, logprobs: Sequence[TokenLogprob]) -> dict[str, Any] | None:
        return chat_logprobs(logprobs) if self.has_logprobs else None

    def _usage(self, answers: Sequence[Answer]) -> dict[str, Any]:
        return formats.usage_of(answers, self.num_choices)

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "system_fingerprint": self.fingerprint,
        }
