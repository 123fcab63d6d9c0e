"""The JSON of chat completions, whole and in chunks, with every field the specification requires.

Knows shapes only. A role chunk for every choice; chunks of content, and of calls: first what is called, then its
arguments; `finish_reason` is null in all of them; an empty delta with the reason; with `include_usage` a chunk without
choices; `[DONE]`.
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
from chatsite.v1.logprobs import chat_logprobs
from chatsite.v1.tools import NO_TOOLS, Offer, Reader
from inference.tools.calls import Call
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
    offer: Offer = NO_TOOLS
    created: int = field(default_factory=lambda: int(time.time()))
    _readers: dict[int, Reader] = field(default_factory=dict)
    _untold: defaultdict[int, list[TokenLogprob]] = field(default_factory=lambda: defaultdict(list))

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        choices = [self._choice(index, answer) for index, answer in enumerate(answers)]
        return self._frame("chat.completion", choices) | {"usage": self._usage(answers)}

    def begin(self) -> list[bytes]:
        delta = {"role": "assistant", "content": "", "refusal": None}
        return [self._chunk(index, delta) for index in range(self.num_choices)]

    def piece(self, index: int, piece: Piece) -> list[bytes]:
        self._untold[index] += piece.logprobs
        return self._parts(index, self._reader(index).read(piece.text))

    def end(self, index: int, ended: Ended) -> list[bytes]:
        reader = self._reader(index)
        rest = self._parts(index, reader.end())
        untold = self._untold.pop(index, ())
        reasons = formats.reasons_of(ended, reader.num_calls)
        return [*rest, self._chunk(index, {}, self._logprobs(untold) if untold else None, reasons)]

    def finish(self, answers: Sequence[Answer]) -> list[bytes]:
        if not self.includes_usage:
            return [formats.DONE]
        usage = self._frame("chat.completion.chunk", []) | {"usage": self._usage(answers)}
        return [formats.event(usage), formats.DONE]

    def fail(self, error: ApiError) -> bytes:
        return formats.error_event(error)

    def _choice(self, index: int, answer: Answer) -> dict[str, Any]:
        assert answer.ended is not None
        reader = self.offer.reader()
        parts = [*reader.read(answer.text), *reader.end()]
        calls = [_call(part) for part in parts if isinstance(part, Call)]
        text = "".join(part for part in parts if isinstance(part, str))
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text if text or not calls else None,
            "refusal": None,
            "annotations": [],
        }
        choice: dict[str, Any] = {
            "index": index,
            "message": message | ({"tool_calls": calls} if calls else {}),
            "logprobs": self._logprobs(answer.logprobs),
        }
        return choice | formats.reasons_of(answer.ended, len(calls))

    def _reader(self, index: int) -> Reader:
        if index not in self._readers:
            self._readers[index] = self.offer.reader()
        return self._readers[index]

    def _parts(self, index: int, parts: Sequence[str | Call]) -> list[bytes]:
        num_calls = self._reader(index).num_calls - sum(isinstance(part, Call) for part in parts)
        lines = []
        for part in parts:
            if isinstance(part, str):
                lines.append(self._told(index, {"content": part}))
            else:
                lines += [
                    self._told(index, {"tool_calls": [delta]}) for delta in _call_deltas(part, num_calls)
                ]
                num_calls += 1
        return lines

    def _told(self, index: int, delta: dict[str, Any]) -> bytes:
        """With the log-probabilities of all tokens since the chunk before it."""
        return self._chunk(index, delta, self._logprobs(self._untold.pop(index, ())))

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


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _call_deltas(call: Call, place: int) -> list[dict[str, Any]]:
    """What is called, then its arguments, piece by piece."""
    named = _call(Call(call.name, "", call.id))
    pieces = [{"function": {"arguments": piece}} for piece in formats.pieces_of(call.arguments)]
    return [{"index": place} | delta for delta in (named, *pieces)]
