"""Calls in answers: what is one, what only looks like one, and that it does not matter where the answer was cut."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.tools.calls import Call
from inference.tools.formats import FORMATS, HERMES, LLAMA_JSON, CallFormat
from inference.tools.reader import CallReader, Part

NAMES = ("weather", "add")
OSLO = Call("weather", '{"city": "Oslo"}')


def read(text: str, form: CallFormat = HERMES, size: int = 10**9, most: int | None = None) -> list[Part]:
    reader = CallReader(form, NAMES, most)
    parts = [part for at in range(0, len(text), size) for part in reader.read(text[at : at + size])]
    return joined([*parts, *reader.end()])


def joined(parts: list[Part]) -> list[Part]:
    whole: list[Part] = []
    for part in parts:
        if isinstance(part, str) and whole and isinstance(whole[-1], str):
            whole[-1] += part
        else:
            whole.append(part)
    return whole


def call(name: str = "weather", **arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


HERMES_CASES: dict[str, tuple[str, list[Part]]] = {
    "a call": (call(city="Oslo"), [OSLO]),
    "text before it": (f"Let me see.\n{call(city='Oslo')}", ["Let me see.", OSLO]),
    "text behind it": (f"{call(city='Oslo')}\nDone.", [OSLO, "\nDone."]),
    "two": (f"{call(city='Oslo')}\n{call('add', a=1, b=2.5)}\n", [OSLO, Call("add", '{"a": 1, "b": 2.5}')]),
    "no blanks": (call(city="Oslo").replace("\n", ""), [OSLO]),
    "no closing": (call(city="Oslo").removesuffix("</tool_call>"), [OSLO]),
    "half a closing": (call(city="Oslo")[:-5], [OSLO]),
    "no arguments": ('<tool_call>{"name": "add"}</tool_call>', [Call("add", "{}")]),
    "arguments as text": (
        '<tool_call>{"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}</tool_call>', [OSLO]
    ),
    "marks in arguments": (
        call(city='</tool_call>"<tool_call>{}'),
        [Call("weather", '{"city": "</tool_call>\\"<tool_call>{}"}')],
    ),
    "braces in texts": (call(city='}]\\"{'), [Call("weather", json.dumps({"city": '}]\\"{'}))]),
    "Chinese stays readable": (call(city="奥斯陆"), [Call("weather", '{"city": "奥斯陆"}')]),
    "an empty answer": ("", []),
    "only blanks": (" \n ", [" \n "]),
}  # fmt: skip
TEXTS = {
    "a mark alone": "I would write <tool_call> here.",
    "half a mark": "1 <tool_cal",
    "a mark at the end": "so: <tool_call>",
    "an unknown function": call("rm_rf", path="/"),
    "no name": '<tool_call>\n{"arguments": {}}\n</tool_call>',
    "a name that is no text": '<tool_call>\n{"name": ["weather"]}\n</tool_call>',
    "broken JSON": '<tool_call>\n{"name": "weather", "arguments": {"city": Oslo}}\n</tool_call>',
    "JSON that never ends": '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo',
    "a list": '<tool_call>\n["weather"]\n</tool_call>',
    "arguments that are no object": '<tool_call>\n{"name": "weather", "arguments": [1]}\n</tool_call>',
    "no number": '<tool_call>{"name": "add", "arguments": {"a": NaN}}</tool_call>',
    "a number without bounds": '<tool_call>{"name": "add", "arguments": {"a": 1e999}}</tool_call>',
    "half a surrogate pair": '<tool_call>{"name": "add", "arguments": {"a": "\\ud800"}}</tool_call>',
    "brackets that do not match": '<tool_call>{"name": "add", "arguments": {"a": [}]}</tool_call>',
    "deep nesting": '<tool_call>{"name": "add", "arguments": ' + '{"a":' * 5000 + "1" + "}" * 5001 + "</tool_call>",
    "JSON alone": '{"name": "weather", "arguments": {"city": "Oslo"}}',
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 7, 10**9])
def test_hermes_calls_are_found(size: int) -> None:
    for name, (text, parts) in HERMES_CASES.items():
        assert read(text, size=size) == parts, name


@pytest.mark.parametrize("size", [1, 3, 10**9])
def test_what_is_no_call_is_text_to_the_letter(size: int) -> None:
    for name, text in TEXTS.items():
        assert read(text, size=size) == [text], name


def test_a_call_behind_a_broken_one_is_found() -> None:
    broken = TEXTS["broken JSON"]
    assert read(f"{broken}\n{call(city='Oslo')}") == [broken, OSLO]


def test_at_most_so_many_calls_are_made() -> None:
    text = f"Well.\n{call(city='Oslo')}\n{call('add')}\nAnd so on."
    assert read(text, most=1) == ["Well.", OSLO]
    assert read(text.removesuffix("</tool_call>\nAnd so on."), most=2)[1:] == [OSLO, Call("add", "{}")]


def test_llama_calls_are_the_whole_answer() -> None:
    one = '{"name": "weather", "parameters": {"city": "Oslo"}}'
    for size in (1, 5, 10**9):
        assert read(one, LLAMA_JSON, size) == [OSLO]
        assert read(f"\n{one}; {one}\n", LLAMA_JSON, size) == [OSLO, OSLO]
        for text in (f"See: {one}", '{"a": 1}', '{"name": "weather", "parameters": {', "{", "Hi {", "[1]"):
            assert read(text, LLAMA_JSON, size) == [text]
        assert read(f"{one} is what I would call.", LLAMA_JSON, size) == [OSLO, " is what I would call."]


PIECES = [
    "<tool_call>", "</tool_call>", "<tool_", "call>", '{"name": "weather", "arguments": {"city": "Oslo"}}', "{", "}",
    '"', "\\", "\n", " ", ";", "a", '{"name": "weather", "parameters": {}}', "你", '\\"',
]  # fmt: skip


@given(
    st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from(sorted(FORMATS)), st.integers(0, 2**32)
)
def test_it_does_not_matter_where_an_answer_was_cut(pieces: list[str], form: str, seed: int) -> None:
    text, cuts = "".join(pieces), random.Random(seed)
    reader, parts = CallReader(FORMATS[form], NAMES), []
    at = 0
    while at < len(text):
        step = cuts.randrange(1, 6)
        parts += reader.read(text[at : at + step])
        at += step
    assert joined([*parts, *reader.end()]) == read(text, FORMATS[form])


def test_text_is_not_held_back_longer_than_it_may_begin_a_call() -> None:
    reader = CallReader(HERMES, NAMES)
    assert reader.read("Hello, ") == ["Hello,"]
    assert reader.read("world <too") == [" world"]
    assert reader.read("l") == [] and reader.read("s>") == [" <tools>"]
    assert reader.read("\n<tool_call>") == []
    assert reader.read("no") == ["\n<tool_call>no"]
