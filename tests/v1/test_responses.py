"""Responses, stateless, as the official client sees them."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest

from inference.testing import script_text

PATH = "/v1/responses"
BEGIN = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
]
END = ["response.output_text.done", "response.content_part.done", "response.output_item.done"]


def test_a_response_is_one_message(client: openai.OpenAI, model: str) -> None:
    response = client.responses.create(model=model, input="Good morning", instructions="Be brief.")
    assert response.output_text == "You said: Good morning (2 words)"
    assert (response.object, response.status, response.error) == ("response", "completed", None)
    assert response.instructions == "Be brief." and response.model == model
    assert response.usage is not None and response.usage.input_tokens > 0
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_items_are_messages_and_parts_are_text(client: openai.OpenAI, model: str) -> None:
    history: Any = [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes?"}]},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "two "}, {"type": "input_text", "text": "2"}],
        },
    ]
    response = client.responses.create(model=model, input=history)
    assert response.output_text == "You said: two 2 (2 words)"


def test_a_chat_question_and_a_response_share_their_answer(http: httpx2.Client, model: str) -> None:
    question = f"What is {uuid4()}?"
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    chat = http.post("/v1/chat/completions", json={"model": model, "messages": messages})
    body = {"model": model, "input": question, "instructions": "Be brief."}
    again = http.post(PATH, json=body)
    assert (chat.headers["x-cache"], again.headers["x-cache"]) == ("miss", "hit-exact")
    told = again.json()["output"][0]["content"][0]["text"]
    assert told == chat.json()["choices"][0]["message"]["content"]


def test_a_stream_has_typed_events_in_their_order(client: openai.OpenAI, model: str) -> None:
    text = script_text(text="abcdefghijkl" * 4)
    events = list(client.responses.create(model=model, input=text, stream=True))
    kinds = [event.type for event in events]
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert kinds == [*BEGIN, *["response.output_text.delta"] * len(deltas), *END, "response.completed"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert deltas and "".join(event.delta for event in deltas) == "abcdefghijkl" * 4
    last = events[-1]
    assert last.type == "response.completed" and last.response.output_text == "abcdefghijkl" * 4
    assert last.response.usage is not None and last.response.usage.output_tokens == 16


def test_the_official_clients_stream_helper_reads_it(client: openai.OpenAI, model: str) -> None:
    with client.responses.stream(model=model, input="Good morning") as stream:
        kinds = {event.type for event in stream}
        assert stream.get_final_response().output_text == "You said: Good morning (2 words)"
    assert {*BEGIN, *END, "response.completed"} <= kinds


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_was_cut_is_incomplete(http: httpx2.Client, model: str, stream: bool) -> None:
    body = {"model": model, "input": script_text(tokens=40), "max_output_tokens": 3, "stream": stream}
    answer = http.post(PATH, json=body)
    if stream:
        kind, line = answer.text.strip().split("\n\n")[-1].split("\n")
        assert kind == "event: response.incomplete"
    told = json.loads(line.removeprefix("data: "))["response"] if stream else answer.json()
    assert told["status"] == told["output"][0]["status"] == "incomplete"
    assert told["incomplete_details"] == {"reason": "max_output_tokens"}
    assert told["usage"]["output_tokens"] == 3


def test_a_failure_in_mid_stream_is_told_and_then_the_end(client: openai.OpenAI, model: str) -> None:
    failing = script_text(text="abc" * 20, fail_after=3)
    events = list(client.responses.create(model=model, input=failing, stream=True))
    last = events[-1]
    assert last.type == "response.failed" and last.response.status == "failed"
    assert last.response.error is not None and last.response.error.message
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model=model, input=failing)


def test_nothing_is_stored_whatever_was_asked(http: httpx2.Client, model: str) -> None:
    response = http.post(PATH, json={"model": model, "input": "hi", "store": True, "metadata": {"a": "b"}})
    assert response.status_code == 200 and response.json()["store"] is False
    assert response.json()["metadata"] == {"a": "b"} and "x-ignored-fields" not in response.headers
    assert http.get(f"{PATH}/{response.json()['id']}").status_code == 404


WRONG: dict[str, tuple[dict[str, Any], int, str]] = {
    "no input": ({"input": None}, 400, "input"),
    "an empty input": ({"input": []}, 400, "input"),
    "an earlier response": ({"previous_response_id": "resp_1"}, 400, "previous_response_id"),
    "a conversation": ({"conversation": "conv_1"}, 400, "conversation"),
    "tools": ({"tools": [{"type": "web_search"}]}, 400, "tools[0].type"),
    "in the background": ({"background": True}, 400, "background"),
    "a schema without a name": ({"text": {"format": {"type": "json_schema"}}}, 400, "text.format.name"),
    "n 2": ({"n": 2}, 400, "n"),
    "an item of another type": ({"input": [{"type": "computer_call"}]}, 400, "input[0].type"),
    "an unknown role": ({"input": [{"role": "banana", "content": "x"}]}, 400, "input[0].role"),
    "an image": (
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        400,
        "input[0].content[0].type",
    ),
    "max_output_tokens 0": ({"max_output_tokens": 0}, 400, "max_output_tokens"),
    "no model": ({"model": None}, 400, "model"),
    "unknown model": ({"model": "nobody"}, 404, "model"),
}


@pytest.mark.parametrize(("fields", "status", "param"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("stream", [False, True])
def test_a_field_that_is_wrong_is_named(
    http: httpx2.Client, model: str, fields: dict[str, Any], status: int, param: str, stream: bool
) -> None:
    response = http.post(PATH, json={"model": model, "input": "hi", "stream": stream} | fields)
    assert (response.status_code, response.json()["error"]["param"]) == (status, param)
