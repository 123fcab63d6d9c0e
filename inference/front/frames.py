"""What a template is shown in place of a history, so that its own text can be told from everybody else's.

In a frame every text has a name of its own; in a marked history control tokens are broken. Both go for messages,
for the functions that are offered and for calls of them. Knows segments and JSON. Knows no template and no tokens.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from inference.front.spans import NOWHERE, THINK_TAG, TOOLS, Piece, marked, pieces_around_tags
from inference.front.templates import Chat
from inference.tools import calls
from inference.types import Segment

# Words that templates look for in a schema, to show a type or to leave something out. They stay themselves: nobody
# who writes a schema can choose them.
SCHEMA_WORDS = frozenset(
    {
        "additionalProperties", "allOf", "anyOf", "array", "boolean", "const", "default", "description", "enum",
        "format", "function", "integer", "items", "name", "null", "number", "object", "oneOf", "parameters",
        "properties", "required", "string", "title", "type",
    }
)  # fmt: skip


@dataclass(slots=True)
class _Names:
    """One name for every text of an owner, so that a template may compare them."""

    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    pieces: dict[tuple[int, str], Piece] = field(default_factory=dict)

    def of(self, text: str, owner: int) -> str:
        if not text or text in SCHEMA_WORDS:
            return text
        known = self.pieces.get((owner, text))
        if known is None:
            name = f"\ue000{self.nonce}.t{len(self.pieces)}\ue001"
            known = self.pieces[owner, text] = Piece(name, text, owner, NOWHERE)
        return known.name


def frame_of(chat: Chat, *, show_tags: bool) -> tuple[Chat, list[Piece]]:
    """The chat as the frame's template sees it, and what stands behind the names.

    With `show_tags` the tags of an answer's thinking stay what they are.
    """
    names = _Names()
    shown: list[Segment] = []
    pieces: list[Piece] = []
    for index, segment in enumerate(chat.segments):
        name = f"\ue000{names.nonce}.{index}"
        if show_tags and has_tags(segment):
            in_frame, found = pieces_around_tags(segment.text, index, name)
        else:
            found = [Piece(f"{name}\ue001", segment.text, index)] if segment.text else []
            in_frame = "".join(piece.name for piece in found)
        pieces += found
        shown.append(_with_calls(segment, in_frame, lambda text, owner=index: names.of(text, owner), names))  # type: ignore[misc]
    tools = _changed_json(chat.tools, lambda text: names.of(text, TOOLS))
    return replace(chat, segments=tuple(shown), tools=tools), [*pieces, *names.pieces.values()]


def marked_chat(chat: Chat, pattern: re.Pattern[str], mark: str) -> Chat:
    """The chat with everything that matches `pattern` broken by `mark`, without ledgers."""

    def change(text: str) -> str:
        return marked(text, pattern, mark)

    segments = tuple(
        replace(
            segment,
            text=change(segment.text),
            token_ids=(),
            tool_calls=_changed_calls(segment.tool_calls, change, change),
            tool_call_id=change(segment.tool_call_id),
        )
        for segment in chat.segments
    )
    return replace(chat, segments=segments, tools=_changed_json(chat.tools, change))


def has_tags(segment: Segment) -> bool:
    """Only answers think: in what others write the tags are text like any other."""
    return segment.role == "assistant" and THINK_TAG.search(segment.text) is not None


Change = Callable[[str], str]


def _with_calls(segment: Segment, text: str, name: Change, names: _Names) -> Segment:
    def name_id(call_id: str) -> str:
        return names.of(call_id, TOOLS)  # the same in a call and in its result

    return Segment(
        segment.role,
        text,
        tool_calls=_changed_calls(segment.tool_calls, name, name_id),
        tool_call_id=name_id(segment.tool_call_id),
    )


def _changed_calls(tool_calls: str, change: Change, change_id: Change) -> str:
    return calls.as_json(
        replace(
            call,
            name=change(call.name),
            arguments=_changed_json(call.arguments, change),
            id=change_id(call.id),
        )
        for call in calls.from_json(tool_calls)
    )


def _changed_json(text: str, change: Change) -> str:
    """The JSON with every text in it changed, keys too."""
    return json.dumps(_changed(json.loads(text), change), ensure_ascii=False) if text else ""


def _changed(value: Any, change: Change) -> Any:
    match value:
        case str():
            return change(value)
        case list():
            return [_changed(inner, change) for inner in value]
        case dict():
            return {change(key): _changed(inner, change) for key, inner in value.items()}
    return value
