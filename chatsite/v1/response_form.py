"""The JSON of responses, whole and as typed events. Knows shapes only.

What was said and called is `v1.response_items`'s. Events are numbered, and each names its type twice: in its line and
in its object.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from chatsite.chat.events import Ended, Piece
from chatsite.v1 import formats
from chatsite.v1.answers import Answer
from chatsite.v1.errors import ApiError
from chatsite.v1.response_format import format_told
from chatsite.v1.response_items import Output, Told
from chatsite.v1.schema import ResponsesRequest
from chatsite.v1.tools import Offer
from inference.tools.functions import CHOICES, Function
from inference.types import EngineInfo, FinishReason

COMPLETED = "completed"


class ResponseForm:
    """What is equal in all events of one response, and the number of the next one. Satisfies `formats.Form`."""

    def __init__(self, name: str, info: EngineInfo, asked: ResponsesRequest, offer: Offer) -> None:
        self._id = f"resp_{name}"
        self._info = info
        self._asked = asked
        self._offer = offer
        self._reader = offer.reader()
        self._output = Output(name)
        self._created_at = int(time.time())
        self._number = 0

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        (answer,) = answers
        assert answer.ended is not None
        for _ in self._output.add([*self._reader.read(answer.text), *self._reader.end()]):
            pass  # nobody listens
        for _ in self._output.close(_status(answer.ended)):
            pass
        return self._ended(answer)

    def begin(self) -> list[bytes]:
        started = [("response.created", self._so_far()), ("response.in_progress", self._so_far())]
        # Where there may be calls, nobody knows yet whether there is a message.
        return self._events([*started, *(self._output.open() if not self._offer.functions else ())])

    def piece(self, index: int, piece: Piece) -> list[bytes]:
        return self._events(self._output.add(self._reader.read(piece.text)))

    def end(self, index: int, ended: Ended) -> list[bytes]:
        told = self._output.add(self._reader.end())
        return self._events([*told, *self._output.close(_status(ended))])

    def finish(self, answers: Sequence[Answer]) -> list[bytes]:
        response = self._ended(answers[0])
        return [self._event(f"response.{response['status']}", response=response)]

    def fail(self, error: ApiError) -> bytes:
        told = {"code": error.code, "message": error.message}
        return self._event("response.failed", response=self._response("failed") | {"error": told})

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        named = {"type": kind, "sequence_number": number} | fields
        return b"event: " + kind.encode() + b"\n" + formats.event(named)

    def _events(self, told: Iterable[Told]) -> list[bytes]:
        return [self._event(kind, **fields) for kind, fields in told]

    def _so_far(self) -> dict[str, Any]:
        return {"response": self._response("in_progress")}

    def _ended(self, answer: Answer) -> dict[str, Any]:
        assert answer.ended is not None
        status = _status(answer.ended)
        is_whole = status == COMPLETED
        return self._response(status) | {
            "completed_at": int(time.time()) if is_whole else None,
            "incomplete_details": None if is_whole else {"reason": "max_output_tokens"},
            "output": self._output.items,
            "usage": _usage([answer]),
        }

    def _response(self, status: str) -> dict[str, Any]:
        asked = self._asked
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created_at,
            "completed_at": None,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens,
            "metadata": asked.metadata or {},
            "model": self._info.model,
            "output": [],
            "parallel_tool_calls": self._offer.is_parallel,
            "previous_response_id": None,
            "reasoning": None,
            "service_tier": "flex" if asked.service_tier == "flex" else "default",
            "store": False,
            "temperature": _given(asked.temperature, self._info.default_temperature),
            "text": {"format": format_told(self._asked)},
            "tool_choice": _choice(self._offer.choice),
            "tools": [_tool(function) for function in self._offer.functions],
            "top_p": _given(asked.top_p, 1.0),
            "presence_penalty": _given(asked.presence_penalty, 0.0),
            "frequency_penalty": _given(asked.frequency_penalty, 0.0),
            "top_logprobs": 0,
            "max_tool_calls": None,
            "background": False,
            "safety_identifier": None,
            "prompt_cache_key": asked.prompt_cache_key,
            "truncation": asked.truncation or "auto",
            "usage": None,
        }


def _given(asked: float | None, otherwise: float) -> float:
    return otherwise if asked is None else asked


def _status(ended: Ended) -> str:
    return COMPLETED if ended.finish_reason == FinishReason.STOP else "incomplete"


def _choice(choice: str) -> str | dict[str, str]:
    return choice if choice in CHOICES else {"type": "function", "name": choice}


def _tool(function: Function) -> dict[str, Any]:
    return {
        "type": "function",
        "name": function.name,
        "description": function.description or None,
        "parameters": function.parameters,
        "strict": function.is_strict,
    }


def _usage(answers: Sequence[Answer]) -> dict[str, Any]:
    usage = formats.usage_of(answers, 1)
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": usage["prompt_tokens_details"] | {"cache_write_tokens": 0},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["total_tokens"],
    }
