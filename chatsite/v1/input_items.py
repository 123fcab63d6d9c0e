"""The input of a response as segments for the engine: messages, calls that were made, and their results.

Knows items. Does not know which functions are offered, nor roles and parts of messages (`v1.prompts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chatsite.v1.errors import invalid
from chatsite.v1.prompts import call_of, merged, segment_of, segments_of, text_of, too_long
from chatsite.v1.schema import Item, Message
from chatsite.v1.tools import tools_missing
from inference.tools.calls import as_json, from_json
from inference.types import Segment

FIELD = "input"
CALL, RESULT = "function_call", "function_call_output"
ITEMS = ("message", CALL, RESULT)


def input_segments(
    given: str | Sequence[Item], instructions: str | None, max_chars: int, *, has_tools: bool
) -> tuple[Segment, ...]:
    """The prompt; instructions are a system message before it. Raises ApiError that names the item."""
    items = [Item(role="user", content=given)] if isinstance(given, str) else given
    read = [_segment(item, index, max_chars, has_tools=has_tools) for index, item in enumerate(items)]
    before = (
        segments_of([Message(role="system", content=instructions)], max_chars, "instructions")
        if instructions
        else ()
    )
    return (*before, *merged(_calls_together(read)))


def _segment(item: Item, index: int, max_chars: int, *, has_tools: bool) -> Segment:
    path = f"{FIELD}[{index}]"
    if item.type in (CALL, RESULT) and not has_tools:
        raise tools_missing(f"{path}.type")
    match item.type:
        case None | "message":
            return _message(item, path, max_chars)
        case "function_call":
            return _call(item, path, max_chars)
        case "function_call_output":
            return _result(item, path, max_chars)
    message = f"Items of type '{item.type[:40]}' are not supported; only these are: {', '.join(ITEMS)}."
    raise invalid(f"{path}.type", message)


def _message(item: Item, path: str, max_chars: int) -> Segment:
    if item.role == "tool":
        raise invalid(f"{path}.role", f"A result is an item of type '{RESULT}'.")
    return segment_of(Message(role=item.role, content=item.content), path, max_chars, has_tools=False)


def _call(item: Item, path: str, max_chars: int) -> Segment:
    if item.name is None:
        raise invalid(f"{path}.name", "A call names its function.", "missing_required_parameter")
    call = call_of(item.name, item.arguments, item.call_id or "", path)
    if len(call.arguments) > max_chars:
        raise too_long(f"{path}.arguments", max_chars)
    return Segment("assistant", "", tool_calls=as_json([call]))


def _result(item: Item, path: str, max_chars: int) -> Segment:
    if item.output is None:
        raise invalid(f"{path}.output", "A result has an output.", "missing_required_parameter")
    text = text_of(item.output, f"{path}.output")
    if len(text) > max_chars:
        raise too_long(f"{path}.output", max_chars)
    return Segment("tool", text, tool_call_id=item.call_id or "")


def _calls_together(segments: Sequence[Segment]) -> Iterator[Segment]:
    """Calls behind each other were made by one answer."""
    held: Segment | None = None
    for segment in segments:
        if held is not None and held.tool_calls and segment.tool_calls:
            both = [*from_json(held.tool_calls), *from_json(segment.tool_calls)]
            held = Segment("assistant", "", tool_calls=as_json(both))
            continue
        if held is not None:
            yield held
        held = segment
    if held is not None:
        yield held
