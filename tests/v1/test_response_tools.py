"""Functions at `/v1/responses`: items of calls and results, and the events that tell of them."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from chatsite.v1.errors import ApiError
from chatsite.v1.input_items import input_segments
from chatsite.v1.schema import parse_response
from inference.testing import script_text
from inference.tools.calls import from_json
from tests.v1.test_tools import ARGUMENTS, SCHEMA, written

PATH = "/v1/responses"
WEATHER: Any = {"type": "function", "name": "weather", "description": "Says how it is.", "parameters": SCHEMA}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": ARGUMENTS}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "12 C"}


def test_a_call_is_an_item_behind_what_was_said(client: openai.OpenAI, model: str) -> None:
    text = script_text(text=f"Let me see.\n{written()}\n{written()}")
    response = client.responses.create(model=model, input=text, tools=[WEATHER])
    said, first, second = response.output
    assert said.type == "message" and response.output_text == "Let me see."
    for call in (first, second):
        assert call.type == "function_call" and (call.name, call.arguments) == ("weather", ARGUMENTS)
        assert call.call_id.startswith("call_") and call.status == "completed"
    assert first.type == second.type == "function_call" and first.call_id != second.call_id
    assert len({item.id for item in response.output}) == 3
    assert response.tool_choice == "auto" and response.parallel_tool_calls
    assert response.tools[0].type == "function" and response.tools[0].name == "weather"
    alone = client.responses.create(
        model=model, input=script_text(text=written()), tools=[WEATHER], tool_choice="none"
    )
    assert alone.output_text == written() and [item.type for item in alone.output] == ["message"]


def test_a_stream_tells_of_each_item_from_its_beginning_to_its_end(client: openai.OpenAI, model: str) -> None:
    text = script_text(text=f"Hm.\n{written()}")
    events = list(client.responses.create(model=model, input=text, tools=[WEATHER], stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type.removeprefix("response.") for event in events]
    texts, pieces = kinds.count("output_text.delta"), kinds.count("function_call_arguments.delta")
    assert kinds == [
        "created", "in_progress", "output_item.added", "content_part.added", *["output_text.delta"] * texts,
        "output_text.done", "content_part.done", "output_item.done",
        "output_item.added", *["function_call_arguments.delta"] * pieces, "function_call_arguments.done",
        "output_item.done", "completed",
    ]  # fmt: skip
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert pieces and "".join(deltas) == ARGUMENTS
    last = events[-1]
    assert last.type == "response.completed"
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert done == last.response.output and [item.type for item in done] == ["message", "function_call"]
    with client.responses.stream(model=model, input=text, tools=[WEATHER]) as stream:
        assert [event.type for event in stream][-1] == "response.completed"
        assert [item.type for item in stream.get_final_response().output] == ["message", "function_call"]


def test_a_call_alone_has_no_empty_message_before_it(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "input": script_text(text=written()), "tools": [WEATHER]}
    assert [item["type"] for item in http.post(PATH, json=body).json()["output"]] == ["function_call"]
    lines = http.post(PATH, json=body | {"stream": True}).text.strip().split("\n\n")
    last = json.loads(lines[-1].split("data: ", 1)[1])["response"]
    assert [item["type"] for item in last["output"]] == ["function_call"]


def test_calls_and_results_come_back_as_items(client: openai.OpenAI, model: str) -> None:
    first = client.responses.create(model=model, input=script_text(text=written()), tools=[WEATHER])
    (call,) = first.output
    assert call.type == "function_call"
    history: Any = [
        {"role": "user", "content": "Weather in Oslo?"},
        call.model_dump(),
        {"type": "function_call_output", "call_id": call.call_id, "output": "12 C"},
    ]
    assert "12 C" in client.responses.create(model=model, input=history, tools=[WEATHER]).output_text


def test_items_become_the_same_history_as_messages() -> None:
    other = CALL | {"call_id": "call_2", "arguments": "{}"}
    items = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "Hm."}, CALL, other, RESULT]
    items.append(RESULT | {"call_id": "call_2", "output": [{"type": "input_text", "text": "13"}]})
    asked = parse_response({"model": "m", "input": items})
    segments = input_segments(asked.input or "", "Be brief.", 1000, has_tools=True)
    assert [(s.role, s.text, s.tool_call_id) for s in segments] == [
        ("system", "Be brief.", ""),
        ("user", "?", ""),
        ("assistant", "Hm.", ""),
        ("tool", "12 C", "call_1"),
        ("tool", "13", "call_2"),
    ]
    assert [(call.id, call.arguments) for call in from_json(segments[2].tool_calls)] == [
        ("call_1", ARGUMENTS),
        ("call_2", "{}"),
    ]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a call without a name": ({"input": [CALL | {"name": None}]}, "input[0].name"),
    "a call of an odd name": ({"input": [CALL | {"name": "a b"}]}, "input[0].name"),
    "arguments that are no JSON": ({"input": [CALL | {"arguments": "{"}]}, "input[0].arguments"),
    "a result without an output": ({"input": [RESULT | {"output": None}]}, "input[0].output"),
    "a result that is a message": ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
    "a long result": ({"input": [RESULT | {"output": "x" * 1001}]}, "input[0].output"),
}


def test_what_is_wrong_with_an_item_is_named() -> None:
    for name, (fields, param) in WRONG.items():
        asked = parse_response({"model": "m"} | fields)
        with pytest.raises(ApiError) as refusal:
            input_segments(asked.input or "", None, 1000, has_tools=True)
        assert refusal.value.param == param, name
    for item in (CALL, RESULT):
        asked = parse_response({"model": "m", "input": [item]})
        with pytest.raises(ApiError) as refusal:
            input_segments(asked.input or "", None, 1000, has_tools=False)
        assert (refusal.value.code, refusal.value.param) == ("tools_not_supported", "input[0].type")


def test_functions_of_a_response_are_checked_as_those_of_a_chat(http: httpx2.Client, model: str) -> None:
    for fields, param in (
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
        ({"tools": [WEATHER, WEATHER]}, "tools[1]"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "other"}}, "tool_choice"),
    ):
        response = http.post(PATH, json={"model": model, "input": "hi"} | fields)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)
