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
from inference.tools.functions import AUTO, NONE, REQUIRED, BadFunctions, Function, from_json
from inference.tools.grammar import grammar_of_calls, grammar_with_json, grammar_with_text
from inference.tools.reader import CallReader
from inference.types import JSON_OBJECT, JSON_SCHEMA, LARK, GenerateRequest, Grammar

ANY_OBJECT = '{"type": "object"}'


@dataclass(frozen=True, slots=True)
class Offers:
    """`format` is the one in which the model's template has calls written; empty: it has none."""

    format: str
    tokenizer: Tokenizer

    def applied(self, request: GenerateRequest, *, can_hold: bool) -> GenerateRequest:
        """The request with its functions as the template takes them, and its answer held to calls where it has to be.

        `can_hold`: the engine holds answers to grammars; without, strict functions are as others. Raises NotSupported
        or InvalidRequest.
        """
        if not request.tools and request.tool_choice in ("", AUTO, NONE):
            return request
        if not self.format:
            raise NotSupported("the model's chat template does not show functions")
        functions = _read(request.tools)
        if request.tool_choice == NONE:  # what isn't shown isn't called
            return replace(request, tools="")
        grammar = self._grammar(functions, request, can_hold=can_hold)
        sampling = replace(request.sampling, grammar=grammar)
        return replace(request, tools=self.shown(request), sampling=sampling)

    def _grammar(
        self, functions: Sequence[Function], request: GenerateRequest, *, can_hold: bool
    ) -> Grammar | None:
        """Of an answer that must call, that may call strictly, or that is JSON unless it calls."""
        form, marks, given = FORMATS[self.format], self._mark_ids(), request.sampling.grammar
        if given is not None and given.kind not in (JSON_OBJECT, JSON_SCHEMA):
            raise InvalidRequest("an answer that may call functions is held to no grammar but one of JSON")
        if chosen := _chosen(functions, request.tool_choice):
            is_one = request.tool_choice != REQUIRED
            return Grammar(LARK, grammar_of_calls(form, chosen, marks, is_one=is_one))
        if given is not None:
            schema = given.text if given.kind == JSON_SCHEMA else ANY_OBJECT
            text = grammar_with_json(form, functions, marks, schema)
            return Grammar(LARK, text) if text else given
        if can_hold and any(function.is_strict for function in functions):
            text = grammar_with_text(form, functions, marks)
            return Grammar(LARK, text) if text else None
        return None

    def shown(self, request: GenerateRequest) -> str:
        """Of an accepted request, the functions as the template takes them."""
        return "" if request.tool_choice == NONE else template_json(_read(request.tools))

    def read(self, text: str, tools: str) -> tuple[str, str]:
        """(text, calls) of an answer to a request that showed these functions, as its readers have them."""
        if not tools or not self.format:
            return text, ""
        reader = CallReader(FORMATS[self.format], [function.name for function in _read(tools)])
        parts = [*reader.read(text), *reader.end()]
        called = [part for part in parts if isinstance(part, Call)]
        return "".join(part for part in parts if isinstance(part, str)), as_json(called)

    def mark_ids(self) -> frozenset[int]:
        """The marks of calls that are control tokens: readers of an answer to a request with functions see them."""
        return frozenset(self._mark_ids().values())

    def _mark_ids(self) -> dict[str, int]:
        marks = FORMATS[self.format].marks if self.format else ()
        is_control = self.tokenizer.control_pattern.fullmatch
        return {mark: self.tokenizer.control_id(mark) for mark in marks if is_control(mark)}


def template_json(functions: Sequence[Function]) -> str:
    if not functions:
        return ""
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
