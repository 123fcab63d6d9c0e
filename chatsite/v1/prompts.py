"""Chat messages and raw prompts of the OpenAI form as segments for the engine.

Knows roles, content parts, calls and results. `developer` is `system`; neighbours of one role become one segment,
because many templates want roles that alternate; what the template still cannot take is refused by the engine with a
400. Does not know which functions are offered: a history may hold calls of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from chatsite.v1.errors import ApiError, invalid
from chatsite.v1.schema import Message, Part, ToolCall
from chatsite.v1.texts import texts_in
from chatsite.v1.tools import tools_missing
from inference.tools.calls import Call, as_json, object_in
from inference.tools.functions import NAME
from inference.types import RAW, Segment

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
MAX_CALLS = 128
MAX_MESSAGES = 2048
MAX_PROMPTS = 8
# Of chat completions, and of responses.
TEXT_PARTS = ("text", "input_text", "output_text")
NOT_TEXTS = "Token ids are not taken here, because they belong to one tokenizer; send the text."
BETWEEN = "\n\n"


def segments_of(
    messages: Sequence[Message], max_chars: int, field: str = "messages", *, has_tools: bool = True
) -> tuple[Segment, ...]:
    """The prompt. Raises ApiError that names the message, as it is found in `field`."""
    if len(messages) > MAX_MESSAGES:
        raise invalid(field, f"At most {MAX_MESSAGES} messages are allowed.", "array_above_max_length")
    read = (
        segment_of(message, f"{field}[{index}]", max_chars, has_tools=has_tools)
        for index, message in enumerate(messages)
    )
    return merged(read)


def merged(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Neighbours of one role as one; a text and the calls behind it are one answer."""
    result: list[Segment] = []
    for segment in segments:
        last = result[-1] if result else None
        if last is None or last.role != segment.role or segment.role == "tool" or last.tool_calls:
            result.append(segment)
        else:
            is_call_alone = segment.tool_calls and not segment.text
            text = last.text if is_call_alone else last.text + BETWEEN + segment.text
            result[-1] = replace(segment, text=text)
    return tuple(result)


def segment_of(message: Message, path: str, max_chars: int, *, has_tools: bool) -> Segment:
    """One message. Raises ApiError that names the field of `path`."""
    role = _role(message, path, has_tools=has_tools)
    made = _calls(message.tool_calls or (), f"{path}.tool_calls")
    text = "" if made and not message.content else _text(message.content, f"{path}.content")
    if len(text) + sum(len(call.arguments) for call in made) > max_chars:
        raise too_long(f"{path}.content", max_chars)
    call_id = message.tool_call_id or "" if role == "tool" else ""
    return Segment(role, text, tool_calls=as_json(made), tool_call_id=call_id)


def too_long(param: str, max_chars: int) -> ApiError:
    return ApiError(413, "message_too_long", f"A message may have {max_chars} characters.", param=param)


def raw_prompts(given: Any, max_chars: int) -> list[tuple[Segment, ...]]:
    """Of one text or a list of texts. Raises ApiError that names the prompt."""
    texts = texts_in(given, "prompt", "A prompt", most=MAX_PROMPTS, max_chars=max_chars, no_ids=NOT_TEXTS)
    return [(Segment(RAW, text),) for text in texts]


def _role(message: Message, path: str, *, has_tools: bool) -> str:
    role = ROLES.get(message.role or "")
    if role is None:
        raise invalid(f"{path}.role", f"The role must be one of: {', '.join(ROLES)}.")
    if role == "tool" and not has_tools:
        raise tools_missing(f"{path}.role")
    if message.tool_calls and role != "assistant":
        raise invalid(f"{path}.tool_calls", "Only a message of the assistant makes calls.")
    if message.tool_calls and not has_tools:
        raise tools_missing(f"{path}.tool_calls")
    return role


def _calls(given: Sequence[ToolCall], path: str) -> list[Call]:
    if len(given) > MAX_CALLS:
        raise invalid(path, f"At most {MAX_CALLS} calls are allowed.", "array_above_max_length")
    for index, call in enumerate(given):
        if call.type not in (None, "function"):
            raise invalid(f"{path}[{index}].type", "Only calls of type 'function' are supported.")
    return [
        call_of(call.function.name, call.function.arguments, call.id, f"{path}[{index}].function")
        for index, call in enumerate(given)
    ]


def call_of(name: str, arguments: str | None, call_id: str, path: str) -> Call:
    """A call of the history. Raises ApiError that names the field of `path`."""
    if not NAME.fullmatch(name):
        raise invalid(f"{path}.name", "A function's name has 1 to 64 of: A-Z, a-z, 0-9, _ and -.")
    if object_in(arguments or "{}") is None:
        raise invalid(f"{path}.arguments", "The arguments must be a JSON object, as a text.")
    return Call(name, arguments or "{}", call_id)


def _text(content: str | Sequence[Part] | None, path: str) -> str:
    if content is None or content == []:
        raise invalid(path, "The content must be a text or a list of text parts.")
    return text_of(content, path)


def text_of(content: str | Sequence[Part], path: str) -> str:
    """Raises ApiError that names the part."""
    if isinstance(content, str):
        return content
    return "".join(_part(part, f"{path}[{place}]") for place, part in enumerate(content))


def _part(part: Part, path: str) -> str:
    if part.type not in TEXT_PARTS:
        raise invalid(f"{path}.type", f"Parts of type '{part.type[:40]}' are not supported; only text is.")
    if part.text is None:
        raise invalid(f"{path}.text", "A text part needs a text.")
    return part.text
