"""The JSON of responses, whole and as typed events. Knows shapes only.

One message with one text part. Events are numbered, and each names its type twice: in its line and in its object.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from chatsite.chat.events import Ended, Piece
from chatsite.v1 import formats
from chatsite.v1.answers import Answer
from chatsite.v1.errors import ApiError
from chatsite.v1.schema import ResponsesRequest
from inference.types import EngineInfo, FinishReason


class ResponseForm:
    """What is equal in all events of one response, and the number of the next one. Satisfies `formats.Form`."""

    def __init__(self, name: str, info: EngineInfo, asked: ResponsesRequest) -> None:
        self._id, self._item_id = f"resp_{name}", f"msg_{name}"
        self._info = info
        self._asked = asked
        self._created_at = int(time.time())
        self._number = 0

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        (answer,) = answers
        assert answer.ended is not None
        is_whole = answer.ended.finish_reason == FinishReason.STOP
        status = "completed" if is_whole else "incomplete"
        return self._response(status) | {
            "completed_at": int(time.time()) if is_whole else None,
            "incomplete_details": None if is_whole else {"reason": "max_output_tokens"},
            "output": [self._item(status, [_part(answer.text)])],
            "usage": _usage(answers),
        }

    def begin(self) -> list[bytes]:
        return [
            self._event("response.created", response=self._response("in_progress")),
            self._event("response.in_progress", response=self._response("in_progress")),
            self._event("response.output_item.added", output_index=0, item=self._item("in_progress", [])),
            self._event("response.content_part.added", **self._place(), part=_part("")),
        ]

    def piece(self, index: int, piece: Piece) -> bytes:
        return self._event("response.output_text.delta", **self._place(), delta=piece.text, logprobs=[])

    def end(self, index: int, ended: Ended) -> list[bytes]:
        return []

    def finish(self, answers: Sequence[Answer]) -> list[bytes]:
        response = self.whole(answers)
        (item,) = response["output"]
        (part,) = item["content"]
        return [
            self._event("response.output_text.done", **self._place(), text=part["text"], logprobs=[]),
            self._event("response.content_part.done", **self._place(), part=part),
            self._event("response.output_item.done", output_index=0, item=item),
            self._event(f"response.{response['status']}", response=response),
        ]

    def fail(self, error: ApiError) -> bytes:
        told = {"code": error.code, "message": error.message}
        return self._event("response.failed", response=self._response("failed") | {"error": told})

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        named = {"type": kind, "sequence_number": number} | fields
        return b"event: " + kind.encode() + b"\n" + formats.event(named)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item_id, "output_index": 0, "content_index": 0}

    def _item(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self._item_id,
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": content,
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
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "reasoning": None,
            "service_tier": "flex" if asked.service_tier == "flex" else "default",
            "store": False,
            "temperature": _given(asked.temperature, self._info.default_temperature),
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
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


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(answers: Sequence[Answer]) -> dict[str, Any]:
    usage = formats.usage_of(answers, 1)
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": usage["prompt_tokens_details"] | {"cache_write_tokens": 0},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["total_tokens"],
    }
