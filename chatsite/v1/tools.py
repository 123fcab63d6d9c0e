"""Functions in requests and calls in answers, in OpenAI's two forms.

Knows what may be asked for and how an answer is read for calls. Does not know how a model is shown functions
(`inference.front`), nor in which shape clients read calls (`v1.chat_form`, `v1.response_items`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from chatsite.v1.errors import ApiError, invalid
from chatsite.v1.schema import ChatRequest, ResponsesRequest
from inference.tools import functions
from inference.tools.calls import Call
from inference.tools.formats import FORMATS
from inference.tools.functions import AUTO, CHOICES, NONE, REQUIRED, BadFunctions, Function, read_function
from inference.tools.reader import CallReader
from inference.types import EngineInfo

NOT_HERE = "This model has no tools: its chat template does not show functions."


@dataclass(frozen=True, slots=True)
class Offer:
    """The functions that a request offers. `format` is how the model calls them."""

    functions: tuple[Function, ...] = ()
    choice: str = AUTO
    is_parallel: bool = True
    format: str = ""

    @property
    def tools(self) -> str:
        return functions.as_json(self.functions)

    def reader(self) -> Reader:
        """For one answer."""
        if not self.functions or self.choice == NONE:
            return Reader(None)
        callable_ = [one.name for one in self.functions if self.choice in (AUTO, REQUIRED, one.name)]
        return Reader(CallReader(FORMATS[self.format], callable_, None if self.is_parallel else 1))


NO_TOOLS = Offer()


class Reader:
    """Text and calls of one answer, in order; every call has an id of its own. Without a call reader all is text."""

    def __init__(self, calls: CallReader | None) -> None:
        self._calls = calls
        self.num_calls = 0

    def read(self, text: str) -> list[str | Call]:
        return self._named(self._calls.read(text)) if self._calls else [text]

    def end(self) -> list[str | Call]:
        return self._named(self._calls.end()) if self._calls else []

    def _named(self, parts: list[str | Call]) -> list[str | Call]:
        named = [
            replace(part, id=f"call_{uuid4().hex[:24]}") if isinstance(part, Call) else part for part in parts
        ]
        self.num_calls += sum(isinstance(part, Call) for part in parts)
        return named


def chat_offer(request: ChatRequest, info: EngineInfo) -> Offer:
    """Raises ApiError that names the field."""
    choice = request.tool_choice
    named = choice.get("function") if isinstance(choice, dict) else None
    return _offer(request, info, named, is_nested=True)


def response_offer(request: ResponsesRequest, info: EngineInfo) -> Offer:
    """Raises ApiError that names the field."""
    return _offer(request, info, request.tool_choice, is_nested=False)


def tools_missing(param: str) -> ApiError:
    return invalid(param, NOT_HERE, "tools_not_supported")


def _offer(
    request: ChatRequest | ResponsesRequest, info: EngineInfo, named: Any, *, is_nested: bool
) -> Offer:
    offered = _functions(request.tools or (), is_nested=is_nested)
    if offered and not info.tool_format:
        raise tools_missing("tools")
    choice = _choice(request.tool_choice, named, offered)
    return Offer(offered, choice, request.parallel_tool_calls is not False, info.tool_format)


def _functions(tools: Sequence[Any], *, is_nested: bool) -> tuple[Function, ...]:
    try:
        read = tuple(_function(tool, f"[{place}]", is_nested=is_nested) for place, tool in enumerate(tools))
        functions.check_functions(read)
    except BadFunctions as error:
        raise invalid(f"tools{error.path}", error.message) from error
    return read


def _function(tool: Any, path: str, *, is_nested: bool) -> Function:
    """In a chat a function stands under its own name in the tool, in a response it is the tool."""
    kind = tool.get("type") if isinstance(tool, dict) else None
    if kind != "function":
        raise BadFunctions(f"{path}.type", "Only tools of type 'function' are supported.")
    return read_function(tool.get("function"), f"{path}.function") if is_nested else read_function(tool, path)


def _choice(given: str | dict[str, Any] | None, named: Any, offered: Sequence[Function]) -> str:
    if given is None:
        return AUTO
    if isinstance(given, str):
        if given not in CHOICES:
            raise invalid(
                "tool_choice", f"'tool_choice' must be one of: {', '.join(CHOICES)}, or a function."
            )
        if given == REQUIRED and not offered:
            raise invalid("tool_choice", "'tool_choice' wants a call, and 'tools' offers no function.")
        return given
    name = named.get("name") if isinstance(named, dict) else None
    if given.get("type") != "function" or not isinstance(name, str):
        raise invalid("tool_choice", "'tool_choice' as an object names one function.")
    if name not in [function.name for function in offered]:
        raise invalid("tool_choice", f"'tools' does not offer the function '{name[:64]}'.")
    return name
