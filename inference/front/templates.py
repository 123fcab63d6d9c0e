"""Chat templates as model folders bring them: sandboxed Jinja with the few extras that such templates expect.

Knows how a template is rendered. Does not know tokens, nor which text came from a user.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock, Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from inference.errors import InvalidRequest
from inference.tools import calls
from inference.types import Segment

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# The same for histories without functions. Functions stand before all else, calls behind the text of an answer, and
# results are what the user says next: as many models have it that write calls in marks.
CHATML_WITH_TOOLS = (
    "{% if tools %}{{ '<|im_start|>system\n' }}"
    "{% if messages[0].role == 'system' %}{{ messages[0].content + '\n\n' }}{% endif %}"
    "{{ 'You may call these functions:\n<tools>' }}{% for tool in tools %}{{ '\n' + tool | tojson }}{% endfor %}"
    '{{ \'\n</tools>\nTo call one, write:\n<tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>\' }}'
    "{{ '<|im_end|>\n' }}{% endif %}"
    "{% for message in messages %}"
    "{% if message.role == 'tool' %}"
    "{% if loop.first or loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}"
    "{{ '\n<tool_response>\n' + message.content + '\n</tool_response>' }}"
    "{% if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\n' }}{% endif %}"
    "{% elif message.tool_calls %}{{ '<|im_start|>assistant\n' + message.content }}"
    "{% for call in message.tool_calls %}"
    "{{ '\n' if message.content or not loop.first else '' }}"
    '{{ \'<tool_call>\n{"name": "\' + call.function.name + \'", "arguments": \' }}'
    "{{ call.function.arguments | tojson + '}\n</tool_call>' }}"
    "{% endfor %}{{ '<|im_end|>\n' }}"
    "{% elif not (tools and loop.first and message.role == 'system') %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Chat:
    """What a template writes down: the messages, and the functions that the model may call, as a list in JSON."""

    segments: Sequence[Segment]
    tools: str = ""
    add_generation_prompt: bool = True


class TemplateRefused(InvalidRequest):
    """The template itself says that it does not take this history."""


class ChatTemplate:
    """`source` is trusted as far as the model folder is; it still runs in Jinja's sandbox."""

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _GenerationBlock]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        self.source = source
        self._template = environment.from_string(source)
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}

    def render(self, chat: Chat, *, now: datetime | None = None) -> str:
        """The prompt as text; `now` None is the real time. Raises TemplateRefused."""
        try:
            return self._template.render(
                messages=_messages(chat.segments),
                tools=json.loads(chat.tools) if chat.tools else None,
                add_generation_prompt=chat.add_generation_prompt,
                strftime_now=(now or datetime.now()).strftime,
                **self._tokens,
            )
        except jinja2.TemplateError as error:
            raise TemplateRefused(f"the model's chat template does not take this history: {error}") from error
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise TemplateRefused(f"the model's chat template fails on this history: {error!r}") from error


def _messages(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """As templates know them. A result bears the name of the function that was called."""
    messages: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for segment in segments:
        message: dict[str, Any] = {"role": segment.role, "content": segment.text}
        if made := calls.from_json(segment.tool_calls):
            message["tool_calls"] = [_call(call) for call in made]
            names |= {call.id: call.name for call in made}
        if segment.tool_call_id:
            message["tool_call_id"] = segment.tool_call_id
            message["name"] = names.get(segment.tool_call_id, "")
        messages.append(message)
    return messages


def _call(call: calls.Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.loads(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


class _GenerationBlock(Extension):
    """`{% generation %}` marks the assistant's text for training; here it only shows what is inside."""

    tags = {"generation"}  # noqa: RUF012 - an instance attribute in the base class

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_shown"), [], [], body).set_lineno(line)

    def _shown(self, caller: Any) -> str:
        return str(caller())


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _to_json(
    value: Any, indent: int | None = None, ensure_ascii: bool = False, sort_keys: bool = False
) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii, sort_keys=sort_keys)
