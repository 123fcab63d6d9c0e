"""What becomes of the functions that a request offers: what the template shows, and what holds the answer.

Knows formats and choices. Does not know prompts, nor how a grammar is kept (`core`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inference.errors import InvalidRequest, NotSupported
from inference.front.tokenizer import Tokenizer
from inference.tools.calls import Call, as_json
from inference.tools.formats import FORMATS
from inference.tools.functions import BadFunctions, Function, from_json
from inference.tools.reader import CallReader
from inference.types import GenerateRequest

AUTO, NONE, REQUIRED = "auto", "none", "required"


@dataclass(frozen=True, slots=True)
class Offers:
    """`format` is the one in which the model's template has calls written; empty: it has none."""

    format: str
    tokenizer: Tokenizer

    def applied(self, request: GenerateRequest) -> GenerateRequest:
        """The request with its functions as the template takes them. Raises NotSupported or InvalidRequest."""
        if not request.tools and request.tool_choice in ("", AUTO, NONE):
            return request
        if not self.format:
            raise NotSupported("the model's chat template does not show functions")
        functions = _read(request.tools)
        _chosen(functions, request.tool_choice)
        if request.tool_choice == NONE:  # what isn't shown isn't called
            return replace(request, tools="")
        return replace(request, tools=template_json(functions))

    def read(self, text: str, tools: str) -> tuple[str, str]:
        """(text, calls) of an answer to a request that showed these functions, as its readers have them."""
        if not tools or not self.format:
            return text, ""
        reader = CallReader(FORMATS[self.format], [function.name for function in _read(tools)])
        parts = [*reader.read(text), *reader.end()]
        called = [part for part in parts if isinstance(part, Call)]
        return "".join(part for part in parts if isinstance(part, str)), as_json(called)

    @property
    def mark_ids(self) -> frozenset[int]:
        """The marks of calls that are control tokens: readers of an answer to a request with functions see them."""
        marks = FORMATS[self.format].marks if self.format else ()
        return frozenset(
            self.tokenizer.control_id(mark)
            for mark in marks
            if self.tokenizer.control_pattern.fullmatch(mark)
        )


def template_json(functions: Sequence[Function]) -> str:
    return json.dumps([function.as_tool() for function in functions], ensure_ascii=False)


def _read(tools: str) -> tuple[Function, ...]:
    try:
        return from_json(tools)
    except BadFunctions as error:
        raise InvalidRequest(f"tools{error.path}: {error.message}") from error


def _chosen(functions: Sequence[Function], choice: str) -> Sequence[Function]:
    """Those that must be called; none where the model decides. Raises InvalidRequest."""
    if choice in ("", AUTO, NONE):
        return ()
    chosen = [function for function in functions if choice in (REQUIRED, function.name)]
    if not chosen:
        raise InvalidRequest("tool_choice wants a call of a function that is not offered")
    return chosen
