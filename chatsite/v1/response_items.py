"""The output of a response as it grows: messages with one text part, and calls. Every step is told as typed events.

Knows items and which events tell of them. Does not know the response around them, nor how an event is numbered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chatsite.v1.formats import pieces_of
from inference.tools.calls import Call

# Kind and fields of an event.
Told = tuple[str, dict[str, Any]]


class Output:
    """`name` makes the ids of the items. The last message is open until something else follows it."""

    def __init__(self, name: str) -> None:
        self.items: list[dict[str, Any]] = []
        self._name = name
        self._text: list[str] = []
        self._is_open = False

    def open(self) -> Iterator[Told]:
        """A message, before its first text."""
        if self._is_open:
            return
        self._is_open = True
        self.items.append(self._message("in_progress", []))
        yield "response.output_item.added", {"output_index": self._place, "item": self.items[-1]}
        yield "response.content_part.added", self._part_place | {"part": _part("")}

    def add(self, parts: Sequence[str | Call]) -> Iterator[Told]:
        for part in parts:
            yield from self._add_text(part) if isinstance(part, str) else self._add_call(part)

    def close(self, status: str) -> Iterator[Told]:
        """The end of what is open; without anything at all there is an empty message."""
        if not self.items:
            yield from self.open()
        if not self._is_open:
            return
        self._is_open = False
        text = "".join(self._text)
        self._text.clear()
        part = _part(text)
        self.items[-1] = self._message(status, [part])
        yield "response.output_text.done", self._part_place | {"text": text, "logprobs": []}
        yield "response.content_part.done", self._part_place | {"part": part}
        yield "response.output_item.done", {"output_index": self._place, "item": self.items[-1]}

    def _add_text(self, text: str) -> Iterator[Told]:
        yield from self.open()
        self._text.append(text)
        yield "response.output_text.delta", self._part_place | {"delta": text, "logprobs": []}

    def _add_call(self, call: Call) -> Iterator[Told]:
        if self._is_open:
            yield from self.close("completed")
        item = {
            "id": self._id("fc"),
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        self.items.append(item)
        index, place = {"output_index": self._place}, {"item_id": item["id"], "output_index": self._place}
        yield (
            "response.output_item.added",
            index | {"item": item | {"status": "in_progress", "arguments": ""}},
        )
        for piece in pieces_of(call.arguments):
            yield "response.function_call_arguments.delta", place | {"delta": piece}
        done = place | {"name": call.name, "arguments": call.arguments}
        yield "response.function_call_arguments.done", done
        yield "response.output_item.done", index | {"item": item}

    @property
    def _place(self) -> int:
        return len(self.items) - 1

    @property
    def _part_place(self) -> dict[str, Any]:
        return {"item_id": self.items[-1]["id"], "output_index": self._place, "content_index": 0}

    def _id(self, kind: str) -> str:
        return f"{kind}_{self._name}" + (f"_{len(self.items)}" if self.items else "")

    def _message(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.items[-1]["id"] if content else self._id("msg"),
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": content,
        }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
