"""A grammar of the answers that call one of the functions, in the language of the engine's grammars.

Knows how each format writes a call. Does not know which marks are tokens of the model (it is told), nor who holds the
answer to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from inference.tools.formats import CallFormat
from inference.tools.functions import Function

_COMPOSING = ("allOf", "anyOf", "oneOf", "not", "$ref", "if", "patternProperties")


def grammar_of_calls(
    form: CallFormat, functions: Sequence[Function], mark_ids: Mapping[str, int], *, is_one: bool
) -> str:
    """Calls and nothing else: one, or as many as the model makes. `mark_ids` are those of the marks that are tokens."""
    start = "start: call" if is_one else f"start: {_calls(form)}"
    return "\n".join([start, *_rules(form, functions, mark_ids)])


def grammar_with_text(
    form: CallFormat, functions: Sequence[Function], mark_ids: Mapping[str, int]
) -> str | None:
    """Any text, and calls behind it if the model makes them; None where only letters in the text would tell a call."""
    if form.opening not in mark_ids:
        return None
    start = f"start: TEXT | TEXT? {_calls(form)}"
    return "\n".join([start, r"TEXT: /(.|\n)+/", *_rules(form, functions, mark_ids)])


def grammar_with_json(
    form: CallFormat, functions: Sequence[Function], mark_ids: Mapping[str, int], schema: str
) -> str | None:
    """JSON that the schema allows, or calls; None where a call begins as any JSON does: the library reads no further
    ahead than to where the two part."""
    if not form.opening:
        return None
    return "\n".join(
        [f"start: content | {_calls(form)}", f"content: %json {schema}", *_rules(form, functions, mark_ids)]
    )


def _calls(form: CallFormat) -> str:
    return f"call ({_quoted(form.between)} call)*" if form.repeats else "call"


def _rules(form: CallFormat, functions: Sequence[Function], mark_ids: Mapping[str, int]) -> list[str]:
    opening, closing = (_mark(mark, mark_ids) for mark in (form.opening, form.closing))
    blank = _quoted(form.blank)
    bodies = " | ".join(f"body_{number}" for number in range(len(functions)))
    rules = [f"call: {opening} {blank} ({bodies}) {blank} {closing}"]
    for number, function in enumerate(functions):
        start = f'{{"name": {json.dumps(function.name)}, "{form.arguments_key}": '
        rules.append(f'body_{number}: {_quoted(start)} arguments_{number} "}}"')
        rules.append(f"arguments_{number}: %json {json.dumps(_closed(function))}")
    return rules


def _closed(function: Function) -> dict[str, object]:
    """The schema of the arguments. A plain list of properties is all there are, or a small model invents more."""
    schema = function.parameters | {"type": "object"}
    is_plain = "properties" in schema and not any(word in schema for word in _COMPOSING)
    return {"additionalProperties": False} | schema if is_plain else schema


def _mark(mark: str, mark_ids: Mapping[str, int]) -> str:
    return f"<[{mark_ids[mark]}]>" if mark in mark_ids else _quoted(mark)


def _quoted(text: str) -> str:
    return json.dumps(text)
