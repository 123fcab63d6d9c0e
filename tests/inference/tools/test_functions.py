"""Which functions may be offered, and how calls travel; errors lead to what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference.tools import calls, functions
from inference.tools.calls import BadCalls, Call
from inference.tools.functions import BadFunctions, Function, read_function

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def deep(levels: int) -> Any:
    return {"type": "object", "properties": {"a": deep(levels - 1)}} if levels else {"type": "null"}


def test_functions_travel_as_they_are_and_templates_see_no_strictness() -> None:
    given = (
        Function("a", "Says a.", SCHEMA),
        Function("b-2_B", parameters=SCHEMA, is_strict=True),
        Function("c"),
    )
    assert functions.from_json(functions.as_json(given)) == given
    assert functions.as_json(()) == "" and functions.from_json("") == ()
    assert given[1].as_tool() == {"type": "function", "function": {"name": "b-2_B", "parameters": SCHEMA}}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("a", ""),
        ({}, ".name"),
        ({"name": ""}, ".name"),
        ({"name": "a" * 65}, ".name"),
        ({"name": "a b"}, ".name"),
        ({"name": "a\n"}, ".name"),
        ({"name": "天气"}, ".name"),
        ({"name": 5}, ".name"),
        ({"name": "none"}, ".name"),
        ({"name": "a", "description": 1}, ".description"),
        ({"name": "a", "parameters": []}, ".parameters"),
        ({"name": "a", "parameters": "{}"}, ".parameters"),
        ({"name": "a", "parameters": {"type": "string"}}, ".parameters"),
        ({"name": "a", "parameters": deep(60)}, ".parameters"),
        ({"name": "a", "strict": "yes"}, ".strict"),
        ({"name": "a", "strict": 0}, ".strict"),
        ({"name": "a", "strict": 1.0}, ".strict"),
    ],
)
def test_what_is_wrong_with_a_function_is_named(given: Any, path: str) -> None:
    with pytest.raises(BadFunctions) as error:
        read_function(given, "[3].function")
    assert error.value.path == f"[3].function{path}" and error.value.message


def test_there_may_not_be_too_many_nor_too_large_nor_two_of_one_name() -> None:
    for wrong, path in (
        ([Function(f"f{number}") for number in range(129)], ""),
        ([Function("a", "x" * functions.MAX_CHARS)], ""),
        ([Function("a"), Function("b"), Function("a")], "[2]"),
    ):
        with pytest.raises(BadFunctions) as error:
            functions.check_functions(wrong)
        assert error.value.path == path
    functions.check_functions([Function(f"f{number}") for number in range(128)])


@pytest.mark.parametrize("tools", ["{", "{}", "[1]", "[{}]", "[" * 100_000, '[{"type": "function"}]'])
def test_tools_that_are_none_are_refused(tools: str) -> None:
    with pytest.raises(BadFunctions):
        functions.from_json(tools)


def test_calls_travel_as_they_are() -> None:
    made = (Call("a", '{"city": "奥斯陆"}', "call_1"), Call("b", "{}", "call_2"))
    assert calls.from_json(calls.as_json(made)) == made
    assert calls.as_json(()) == "" and calls.from_json("") == ()
    assert calls.from_json('[{"name": "a", "arguments": ""}]') == (Call("a"),)


@pytest.mark.parametrize(
    "given",
    ["{", {}, [1], [{}], [{"name": ""}], [{"name": "a", "arguments": {}}], [{"name": "a", "arguments": "[1]"}],
     [{"name": "a", "arguments": "{"}], [{"name": "a", "arguments": '{"a": NaN}'}], [{"name": "a", "id": 1}]],
)  # fmt: skip
def test_what_is_no_call_is_refused(given: Any) -> None:
    with pytest.raises(BadCalls):
        calls.from_json(given if isinstance(given, str) else json.dumps(given))
