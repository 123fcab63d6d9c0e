"""Bad requests at /v1: each harms only itself, with a clear error object and never a page, a traceback or a 500."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from tests.livesite import LiveSite

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "hi"}


def error_of(response: httpx2.Response) -> dict[str, Any]:
    """The error object; asserts its shape."""
    assert response.headers["content-type"] == "application/json", response.text[:300]
    body = response.json()
    assert set(body) == {"error"} and set(body["error"]) == {"message", "type", "param", "code"}
    error = body["error"]
    assert isinstance(error["message"], str) and error["message"]
    assert isinstance(error["type"], str) and isinstance(error["code"], str)
    assert "Traceback" not in response.text and "<html" not in response.text.lower()
    return error


def changed(**fields: Any) -> dict[str, Any]:
    """A good chat request with some fields changed."""
    return {"model": "MODEL", "messages": [USER]} | fields


def messages(*given: Any) -> dict[str, Any]:
    return changed(messages=list(given))


RAW_BODIES = {
    "empty": (b"", 400),
    "not json": (b"{bad", 400),
    "half surrogate": (rb'{"model":"MODEL","messages":[{"role":"user","content":"ok \ud83d end"}]}', 400),
    "lone low surrogate": (rb'{"model":"MODEL","messages":[{"role":"user","content":"\udc97"}]}', 400),
    "nul": (rb'{"model":"MODEL","messages":[{"role":"user","content":"ab\u0000cd"}]}', 400),
    "nul in a key": (rb'{"model":"MODEL","messages":[{"role":"user","content":"x"}],"a\u0000":1}', 400),
    "broken utf-8": (b'{"model":"MODEL","messages":[{"role":"user","content":"\xff\xfe"}]}', 400),
    "deep": (b"[" * 100_000, 400),
    "deep in an ignored field": (b'{"model":"MODEL","zz":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400),
    "a number of 5,000 digits": (
        b'{"model":"MODEL","messages":[{"role":"user","content":"x"}],"seed":' + b"1" * 5000 + b"}",
        400,
    ),
    "nan": (b'{"model":"MODEL","messages":[{"role":"user","content":"x"}],"temperature":NaN}', 400),
    "an array": (b"[]", 400),
    "a text": (b'"hello"', 400),
    "null": (b"null", 400),
    "too large": (b'{"a":"' + b"x" * 3_000_000 + b'"}', 413),
}


@pytest.mark.parametrize(("body", "status"), RAW_BODIES.values(), ids=RAW_BODIES)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_body_that_cannot_be_read(
    http: httpx2.Client, model: str, body: bytes, status: int, accept: str
) -> None:
    raw = body.replace(b"MODEL", model.encode())
    response = http.post(CHAT, content=raw, headers={"Content-Type": "application/json", "Accept": accept})
    assert response.status_code == status
    error_of(response)


FIELDS: dict[str, tuple[dict[str, Any], int, str | None]] = {
    "no model": ({"messages": [USER]}, 400, "model"),
    "no messages": ({"model": "MODEL"}, 400, "messages"),
    "unknown model": (changed(model="gpt-nobody"), 404, "model"),
    "model is a number": (changed(model=5), 400, "model"),
    "empty messages": (messages(), 400, "messages"),
    "messages is a text": (changed(messages="hi"), 400, "messages"),
    "an empty message": (messages({}), 400, "messages[0].role"),
    "a message is a text": (messages("hi"), 400, "messages[0]"),
    "unknown role": (messages(USER, {"role": "banana", "content": "x"}), 400, "messages[1].role"),
    "role in capitals": (messages({"role": "User", "content": "x"}), 400, "messages[0].role"),
    "role is a number": (messages({"role": 1, "content": "x"}), 400, "messages[0].role"),
    "content null": (messages({"role": "user", "content": None}), 400, "messages[0].content"),
    "no content": (messages({"role": "user"}), 400, "messages[0].content"),
    "content is a number": (messages({"role": "user", "content": 7}), 400, "messages[0].content"),
    "no parts": (messages({"role": "user", "content": []}), 400, "messages[0].content"),
    "an image": (
        messages({"role": "user", "content": [{"type": "image_url"}]}),
        400,
        "messages[0].content[0].type",
    ),
    "a part without text": (
        messages({"role": "user", "content": [{"type": "text"}]}),
        400,
        "messages[0].content[0].text",
    ),
    "10,000 messages": (messages(*[USER] * 10_000), 400, "messages"),
    "a text of a megabyte": (
        messages({"role": "user", "content": "x" * 1_000_000}),
        413,
        "messages[0].content",
    ),
    "max_tokens 0": (changed(max_tokens=0), 400, "max_tokens"),
    "max_tokens -1": (changed(max_tokens=-1), 400, "max_tokens"),
    "max_tokens 1.5": (changed(max_tokens=1.5), 400, "max_tokens"),
    "max_tokens '10'": (changed(max_tokens="10"), 400, "max_tokens"),
    "max_tokens true": (changed(max_tokens=True), 400, "max_tokens"),
    "max_completion_tokens 0": (changed(max_completion_tokens=0), 400, "max_completion_tokens"),
    "temperature -1": (changed(temperature=-1), 400, "temperature"),
    "temperature 3": (changed(temperature=3), 400, "temperature"),
    "temperature 'hot'": (changed(temperature="hot"), 400, "temperature"),
    "top_p 0": (changed(top_p=0), 400, "top_p"),
    "top_p 2": (changed(top_p=2), 400, "top_p"),
    "presence_penalty 5": (changed(presence_penalty=5), 400, "presence_penalty"),
    "stream 'yes'": (changed(stream="yes"), 400, "stream"),
    "stream_options is a text": (changed(stream_options="x"), 400, "stream_options"),
    "20 stops": (changed(stop=["x"] * 20), 400, "stop"),
    "a long stop": (changed(stop="x" * 65), 400, "stop"),
    "a stop is a number": (changed(stop=[1]), 400, "stop[0]"),
    "n 0": (changed(n=0), 400, "n"),
    "n 9": (changed(n=9), 400, "n"),
    "n '2'": (changed(n="2"), 400, "n"),
    "seed 2^80": (changed(seed=2**80), 400, "seed"),
    "tools": (changed(tools=[{"type": "function"}]), 400, "tools[0].function"),
    "an unknown format": (changed(response_format={"type": "yaml"}), 400, "response_format.type"),
    "a template": (changed(chat_template="{{ x }}"), 400, "chat_template"),
    "logprobs is a number": (changed(logprobs=3), 400, "logprobs"),
    "top_logprobs alone": (changed(top_logprobs=3), 400, "top_logprobs"),
    "top_logprobs 21": (changed(logprobs=True, top_logprobs=21), 400, "top_logprobs"),
    "a bias for a word": (changed(logit_bias={"yes": 1}), 400, "logit_bias"),
    "a bias of 101": (changed(logit_bias={"5": 101}), 400, "logit_bias"),
    "a bias that is a text": (changed(logit_bias={"5": "a lot"}), 400, "logit_bias"),
    "min_tokens -1": (changed(min_tokens=-1), 400, "min_tokens"),
    "top_k 2,000,000": (changed(top_k=2_000_000), 400, "top_k"),
    "min_tokens above max_tokens": (changed(min_tokens=5, max_tokens=4), 400, "min_tokens"),
    "a negative stop id": (changed(stop_token_ids=[-1]), 400, "stop_token_ids[0]"),
    "priority -1": (changed(priority=-1), 400, "priority"),
}


@pytest.mark.parametrize(("body", "status", "param"), FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("streams", [False, True])
def test_a_field_that_is_wrong_is_named(
    http: httpx2.Client, model: str, body: dict[str, Any], status: int, param: str, streams: bool
) -> None:
    """AP-03, AP-04, AP-06."""
    sent = (
        ({"stream": True} if streams else {})
        | body
        | ({"model": model} if body.get("model") == "MODEL" else {})
    )
    response = http.post(CHAT, json=sent)
    assert response.status_code == status
    assert error_of(response)["param"] == param


GOOD = {
    "nulls": {
        "max_tokens": None,
        "temperature": None,
        "stop": None,
        "n": None,
        "tools": None,
        "stream": None,
    },
    "a huge limit is capped": {"max_tokens": 10**9},
    "both limits": {"max_tokens": 1, "max_completion_tokens": 3},
    "empty stops stop nothing": {"stop": ""},
    "a list of empty stops": {"stop": [""]},
    "no tools": {"tools": []},
    "no bias": {"logit_bias": {}},
    "no logprobs": {"logprobs": False},
    "one choice": {"n": 1},
    "text format": {"response_format": {"type": "text"}},
    "integers for floats": {"temperature": 1, "top_p": 1},
    "next to nothing": {"top_p": 1e-200, "repetition_penalty": 1e-60},
    "whole floats for integers": {"max_tokens": 16.0, "seed": 7.0, "n": 1.0},
    "a negative seed": {"seed": -1},
    "system only": {"messages": [{"role": "system", "content": "x"}]},
    "two users": {"messages": [USER, USER]},
    "assistant first": {"messages": [{"role": "assistant", "content": "hello"}, USER]},
    "system in the middle": {"messages": [USER, {"role": "system", "content": "x"}, USER]},
    "two systems": {
        "messages": [{"role": "system", "content": "x"}, {"role": "system", "content": "y"}, USER]
    },
    "an emoji": {"messages": [{"role": "user", "content": "\U0001f600"}]},
}


@pytest.mark.parametrize("fields", GOOD.values(), ids=GOOD)
def test_odd_but_good_requests_are_answered(http: httpx2.Client, model: str, fields: dict[str, Any]) -> None:
    """AP-03, AP-06."""
    response = http.post(CHAT, json={"model": model, "messages": [USER]} | fields)
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", CHAT, 405), ("PUT", CHAT, 405), ("OPTIONS", CHAT, 405), ("DELETE", "/v1/models", 405),
        ("POST", "/v1/models", 405), ("GET", "/v1/nothing", 404), ("POST", "/v1/chat/completions/", 404),
        ("GET", "/v1", 404), ("GET", "/v1/", 404), ("GET", "/v1/models/", 404), ("GET", "/v1/models/nobody", 404),
        ("GET", "/v1/responses", 405), ("GET", "/v1/%00", 404), ("GET", "/v1/../v1/x", 404),
    ],
)  # fmt: skip
def test_wrong_paths_and_methods(http: httpx2.Client, method: str, path: str, status: int) -> None:
    response = http.request(method, path)
    assert response.status_code == status
    error_of(response)
    assert ("allow" in response.headers) is (status == 405)


def test_a_head_request_gets_no_stream(http: httpx2.Client) -> None:
    assert http.head(CHAT).status_code == 405


def test_a_foreign_preflight_gets_no_allow_header(site: LiveSite) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    response = httpx2.options(f"{site.url}{CHAT}", headers=headers)
    assert not [name for name in response.headers if name.startswith("access-control-")]


def test_an_unknown_host_is_an_error_object(http: httpx2.Client) -> None:
    response = http.get("/v1/models", headers={"Host": "evil.example"})
    assert response.status_code == 400
    assert set(response.json()) == {"error"}


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer x",
        "Basic abc",
        "rill_x",
        "Bearer rill_" + "A" * 43,
        "Bearer " + "x" * 5000,
        "Bearer é",
    ],
)
def test_a_wrong_key_is_401(site: LiveSite, header: str) -> None:
    response = httpx2.get(f"{site.url}/v1/models", headers=[(b"Authorization", header.encode())])
    assert response.status_code == 401
    assert error_of(response)["type"] == "authentication_error"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"model": "gpt-nobody"}, openai.NotFoundError),
        ({"messages": []}, openai.BadRequestError),
        ({"temperature": 9}, openai.BadRequestError),
    ],
)
def test_the_official_client_raises_its_own_classes(
    client: openai.OpenAI, model: str, change: dict[str, Any], expected: type[openai.APIStatusError]
) -> None:
    with pytest.raises(expected) as caught:
        client.chat.completions.create(**({"model": model, "messages": [USER]} | change))
    assert caught.value.code and caught.value.type and caught.value.request_id


def test_the_engine_lives_on_after_all_that(http: httpx2.Client, model: str, site: LiveSite) -> None:
    response = http.post(CHAT, json={"model": model, "messages": [USER]})
    assert response.status_code == 200
    assert site.engine.poll() is None and site.web.poll() is None
    assert json.loads(httpx2.get(f"{site.url}/health/ready").text)["status"] == "ready"
