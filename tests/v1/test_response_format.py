"""Answers in a form that was asked for: what is taken, what is refused and where, and who gets which stored answer.

The scripted engine checks grammars as the real one does and then plays what the question says; that answers are held to
them, tests/inference/contract shows.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest
from pydantic import BaseModel

from inference.testing import script_text
from tests.v1.test_chat import ask, chunks_of

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class City(BaseModel):
    name: str
    people: int | None
    rivers: list[str]


ROME = City(name='Rom "a"', people=None, rivers=["Tiber"])
QUESTION = script_text(text=ROME.model_dump_json())


def chat_format(schema: Any = SCHEMA, **fields: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True} | fields}


def test_the_official_client_parses_what_it_asked_for(client: openai.OpenAI, model: str) -> None:
    parsed = client.chat.completions.parse(model=model, messages=ask(QUESTION), response_format=City)
    assert parsed.choices[0].message.parsed == ROME and parsed.choices[0].finish_reason == "stop"
    with client.chat.completions.stream(model=model, messages=ask(QUESTION), response_format=City) as stream:
        assert "content.done" in {event.type for event in stream}
        assert stream.get_final_completion().choices[0].message.parsed == ROME
    response = client.responses.parse(model=model, input=QUESTION, text_format=City)
    assert response.output_parsed == ROME
    assert response.text is not None and response.text.format is not None
    assert response.text.format.type == "json_schema" and response.text.format.name == "City"
    with client.responses.stream(model=model, input=QUESTION, text_format=City) as events:
        assert "response.completed" in {event.type for event in events}
        assert events.get_final_response().output_parsed == ROME


@pytest.mark.parametrize("n", [1, 2])
def test_an_object_of_any_kind_may_be_asked_for(http: httpx2.Client, model: str, n: int) -> None:
    body = {"model": model, "messages": ask(QUESTION), "response_format": {"type": "json_object"}, "n": n}
    told = http.post(CHAT, json=body)
    assert told.status_code == 200 and len(told.json()["choices"]) == n
    for without in (None, {"type": "text"}, chat_format(None), chat_format(strict=None, description="d")):
        assert http.post(CHAT, json=body | {"response_format": without}).status_code == 200
    text = {"format": {"type": "json_object"}}
    response = http.post(RESPONSES, json={"model": model, "input": QUESTION, "text": text})
    assert response.status_code == 200 and response.json()["text"] == text


# What is wrong: (the format of a chat, the field that is named)
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown type": ({"type": "yaml"}, "response_format.type"),
    "no type": ({}, "response_format"),
    "no schema object": ({"type": "json_schema"}, "response_format.json_schema"),
    "no name": (chat_format(name=None), "response_format.json_schema.name"),
    "a name that is none": (chat_format(name="a b"), "response_format.json_schema.name"),
    "a schema of another type": (chat_format([1]), "response_format.json_schema.schema"),
    "an unknown JSON type": (chat_format({"type": "banana"}), "response_format"),
    "an unknown keyword": (chat_format({"not": {"type": "string"}}), "response_format"),
    "a file": (chat_format({"$ref": "file:///etc/passwd"}), "response_format"),
    "too long": (chat_format({"enum": [f"{n:064}" for n in range(1100)]}), "response_format"),
}


def test_a_form_that_cannot_be_had_is_refused_at_its_field_before_anything_starts(
    http: httpx2.Client, model: str
) -> None:
    for what, (wanted, param) in WRONG.items():
        for stream in (False, True):
            body = {"model": model, "messages": ask("hi"), "response_format": wanted, "stream": stream}
            refused = http.post(CHAT, json=body)
            error = refused.json()["error"]
            assert (refused.status_code, error["param"]) == (400, param), (what, error)
            assert error["message"] and "Traceback" not in error["message"]


def test_a_response_names_its_own_field(http: httpx2.Client, model: str) -> None:
    for fields, param in (
        ({"type": "yaml"}, "text.format.type"),
        ({"type": "json_schema", "schema": SCHEMA}, "text.format.name"),
        ({"type": "json_schema", "name": "n", "schema": {"type": "banana"}}, "text.format"),
    ):
        refused = http.post(RESPONSES, json={"model": model, "input": "hi", "text": {"format": fields}})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


def test_a_schema_bomb_costs_its_own_request_only(http: httpx2.Client, model: str) -> None:
    """Two hundred patterns that must hold together: minutes of compiling, if nobody stopped it."""
    bomb = chat_format({"type": "string", "allOf": [{"pattern": f"a.{{{n}}}b"} for n in range(1, 200)]})
    body = {"model": model, "messages": ask("hi"), "response_format": bomb}
    error = http.post(CHAT, json=body).json()["error"]
    assert (error["code"], error["param"]) == ("invalid_grammar", "response_format")
    fine = http.post(CHAT, json=body | {"response_format": chat_format()})
    assert fine.status_code == 200


def test_a_stored_answer_to_one_form_answers_no_other(http: httpx2.Client, model: str) -> None:
    """SC-04: text, any object, and two schemas of the same name are four different questions."""
    question = script_text(text=json.dumps({"n": str(uuid4())}))
    other = chat_format(SCHEMA | {"additionalProperties": False})
    forms: list[Any] = [None, {"type": "json_object"}, chat_format(), other]
    body = {"model": model, "messages": ask(question)}
    for found in ("miss", "hit-exact"):
        for form in forms:
            told = http.post(CHAT, json=body | ({"response_format": form} if form else {}))
            assert (told.status_code, told.headers["x-cache"]) == (200, found), form
    streamed = http.post(CHAT, json=body | {"response_format": other, "stream": True})
    assert streamed.headers["x-cache"] == "hit-exact" and chunks_of(streamed)
