"""The JSON of text completions, whole and in chunks. Knows shapes only.

Chunks with text and `finish_reason` null; an empty text with the reason; with `include_usage` a chunk without choices;
`[DONE]`. The answers to the first prompt come first, `num_choices` for each.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chatsite.chat.events import Ended, Piece
from chatsite.v1 import formats
from chatsite.v1.answers import Answer
from chatsite.v1.errors import ApiError
from chatsite.v1.logprobs import completion_logprobs
from inference.types import TokenLogprob


@dataclass(frozen=True, slots=True)
class CompletionForm:
    """What is equal in every chunk of one response, and how long each text is by now. Satisfies `formats.Form`."""

    id: str
    model: str
    fingerprint: str
    num_choices: int = 1
    has_logprobs: bool = False
    includes_usage: bool = False
    created: int = field(default_factory=lambda: int(time.time()))
    _lengths: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        choices = []
        for index, answer in enumerate(answers):
            assert answer.ended is not None
            choices.append(
                self._choice(index, answer.text, answer.logprobs) | formats.reasons_of(answer.ended)
            )
        return self._frame(choices) | {"usage": formats.usage_of(answers, self.num_choices)}

    def begin(self) -> list[bytes]:
        return []

    def piece(self, index: int, piece: Piece) -> list[bytes]:
        choice = self._choice(index, piece.text, piece.logprobs, self._lengths[index])
        self._lengths[index] += len(piece.text)
        return [formats.event(self._frame([choice]))]

    def end(self, index: int, ended: Ended) -> list[bytes]:
        choice = self._choice(index, "") | {"logprobs": None} | formats.reasons_of(ended)
        return [formats.event(self._frame([choice]))]

    def finish(self, answers: Sequence[Answer]) -> list[bytes]:
        if not self.includes_usage:
            return [formats.DONE]
        usage = self._frame([]) | {"usage": formats.usage_of(answers, self.num_choices)}
        return [formats.event(usage), formats.DONE]

    def fail(self, error: ApiError) -> bytes:
        return formats.error_event(error)

    def _choice(
        self, index: int, text: str, logprobs: Sequence[TokenLogprob] = (), offset: int = 0
    ) -> dict[str, Any]:
        told = completion_logprobs(logprobs, offset) if self.has_logprobs else None
        return {"text": text, "index": index, "logprobs": told, "finish_reason": None}

    def _frame(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "system_fingerprint": self.fingerprint,
        }
