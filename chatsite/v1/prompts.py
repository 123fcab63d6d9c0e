"""Chat messages and raw prompts of the OpenAI form as segments for the engine.

Knows roles and content parts. `developer` is `system`; neighbours of one role become one segment, because many
templates want roles that alternate; what the template still cannot take is refused by the engine with a 400.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatsite.v1.errors import ApiError, invalid
from chatsite.v1.schema import Item, Message, Part
from inference.types import RAW, Segment

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
TOOL_ROLES = ("tool", "function")
MAX_MESSAGES = 2048
MAX_PROMPTS = 8
# Of chat completions, and of responses.
TEXT_PARTS = ("text", "input_text", "output_text")
NOT_TEXTS = "Token ids are not taken here, because they belong to one tokenizer; send the text."
BETWEEN = "\n\n"


def segments_of(messages: Sequence[Message], max_chars: int, field: str = "messages") -> tuple[Segment, ...]:
    """The prompt. Raises ApiError that names the message, as it is found in `field`."""
    if len(messages) > MAX_MESSAGES:
        raise invalid(field, f"At most {MAX_MESSAGES} messages are allowed.", "array_above_max_length")
    segments: list[Segment] = []
    for index, message in enumerate(messages):
        path = f"{field}[{index}]"
        role, text = _role(message, path), _text(message, path)
        if len(text) > max_chars:
            raise ApiError(
                413,
                "message_too_long",
                f"A message may have {max_chars} characters.",
                param=f"{path}.content",
            )
        if segments and segments[-1].role == role:
            segments[-1] = Segment(role, segments[-1].text + BETWEEN + text)
        else:
            segments.append(Segment(role, text))
    return tuple(segments)


def raw_prompts(given: Any, max_chars: int) -> list[tuple[Segment, ...]]:
    """Of one text or a list of texts. Raises ApiError that names the prompt."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise invalid("prompt", "The prompt must be a text or a list of texts.", "missing_required_parameter")
    if any(isinstance(text, int | list) for text in texts):
        raise invalid("prompt", NOT_TEXTS, "token_arrays_not_supported")
    if len(texts) > MAX_PROMPTS:
        raise invalid("prompt", f"At most {MAX_PROMPTS} prompts are allowed.", "array_above_max_length")
    for index, text in enumerate(texts):
        param = "prompt" if text is given else f"prompt[{index}]"
        if not isinstance(text, str) or not text:
            raise invalid(param, "A prompt must not be empty.")
        if len(text) > max_chars:
            raise ApiError(413, "message_too_long", f"A prompt may have {max_chars} characters.", param=param)
    return [(Segment(RAW, text),) for text in texts]


def input_segments(
    given: str | Sequence[Item], instructions: str | None, max_chars: int
) -> tuple[Segment, ...]:
    """Of the input of a response; instructions are a system message before it. Raises ApiError."""
    items = [Item(role="user", content=given)] if isinstance(given, str) else given
    for index, item in enumerate(items):
        if item.type not in (None, "message"):
            message = f"Items of type '{item.type[:40]}' are not supported; only messages are."
            raise invalid(f"input[{index}].type", message)
    segments = segments_of(items, max_chars, "input")
    if not instructions:
        return segments
    return (
        *segments_of([Message(role="system", content=instructions)], max_chars, "instructions"),
        *segments,
    )


def _role(message: Message, path: str) -> str:
    if message.role in TOOL_ROLES:
        raise invalid(f"{path}.role", "Tools are not supported by this server.", "tools_not_supported")
    role = ROLES.get(message.role or "")
    if role is None:
        raise invalid(f"{path}.role", f"The role must be one of: {', '.join(ROLES)}.")
    if message.tool_calls:
        raise invalid(f"{path}.tool_calls", "Tools are not supported by this server.", "tools_not_supported")
    return role


def _text(message: Message, path: str) -> str:
    content = message.content
    if content is None or content == []:
        raise invalid(f"{path}.content", "The content must be a text or a list of text parts.")
    if isinstance(content, str):
        return content
    return "".join(_part(part, f"{path}.content[{place}]") for place, part in enumerate(content))


def _part(part: Part, path: str) -> str:
    if part.type not in TEXT_PARTS:
        raise invalid(f"{path}.type", f"Parts of type '{part.type[:40]}' are not supported; only text is.")
    if part.text is None:
        raise invalid(f"{path}.text", "A text part needs a text.")
    return part.text
