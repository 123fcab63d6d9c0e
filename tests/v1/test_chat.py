"""Chat completions as the official client sees them."""

from __future__ import annotations

import json
from uuid import uuid4

import httpx2
import openai
import pytest

from inference.testing import script_text
from tests.patience import PATIENCE_S

FORTY = script_text(tokens=40)
LONG = "abcdefghijklmnopqrstuvwxyz" * 4


def ask(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def chunks_of(response: httpx2.Response) -> list[dict]:
    """The JSON of all data lines before [DONE], which must be the last."""
    lines = [line for line in response.text.split("\n\n") if line and not line.startswith(":")]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_a_whole_answer_has_every_required_field(client: openai.OpenAI, model: str) -> None:
    completion = client.chat.completions.create(model=model, messages=ask("Hello there"))
    choice = completion.choices[0]
    assert choice.message.content == "You said: Hello there (2 words)"
    assert (choice.index, choice.message.role, choice.finish_reason) == (0, "assistant", "stop")
    assert completion.object == "chat.completion" and completion.model == model
    assert {"refusal", "content", "role"} <= choice.message.model_fields_set
    assert "logprobs" in choice.model_fields_set
    assert completion.usage is not None and completion.usage.prompt_tokens > 0
    assert (
        completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    )


def test_a_stream_says_the_same_as_a_whole_answer(client: openai.OpenAI, model: str) -> None:
    question = ask(f"Same twice {uuid4()}")
    stream = client.chat.completions.create(model=model, messages=question, stream=True)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    whole = client.chat.completions.create(model=model, messages=question).choices[0].message.content
    assert streamed == whole


def test_the_stream_keeps_the_order_that_breaks_no_client(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "messages": ask(FORTY), "stream": True, "stream_options": {"include_usage": True}}
    response = http.post("/v1/chat/completions", json=body)
    role, *content, last, usage = chunks_of(response)
    assert role["choices"][0]["delta"]["role"] == "assistant" and role["choices"][0]["delta"]["content"] == ""
    assert content and all(chunk["choices"][0]["delta"]["content"] for chunk in content)
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in [role, *content])
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "stop")
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] == 40
    assert len({(chunk["id"], chunk["created"]) for chunk in [role, *content, last, usage]}) == 1


@pytest.mark.parametrize(
    "options", [{}, {"stream_options": {"include_usage": False}}, {"stream_options": None}]
)
def test_usage_comes_only_when_it_was_asked_for(http: httpx2.Client, model: str, options: dict) -> None:
    body = {"model": model, "messages": ask(FORTY), "stream": True} | options
    chunks = chunks_of(http.post("/v1/chat/completions", json=body))
    assert all(chunk["choices"] and "usage" not in chunk for chunk in chunks)


def test_tokens_are_counted_equally_in_every_mode(client: openai.OpenAI, model: str) -> None:
    whole = client.chat.completions.create(model=model, messages=ask(FORTY))
    assert whole.usage is not None and whole.usage.completion_tokens == 40


def test_a_stream_passes_every_collector_on_its_way(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "messages": ask(FORTY), "stream": True}
    response = http.post("/v1/chat/completions", json=body, headers={"Accept-Encoding": "gzip, br"})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["content-encoding"] == "identity"
    assert (
        "no-cache" in response.headers["cache-control"]
        and "no-transform" in response.headers["cache-control"]
    )
    assert response.headers["x-accel-buffering"] == "no"
    assert "content-length" not in response.headers


def test_text_arrives_while_the_answer_is_made(http: httpx2.Client, model: str) -> None:
    """The answer stands still for ever after its fifth token; what came before must be here all the same."""
    stalling = script_text(text="abcdefghijklmnopqrstuvwxyz", stall_after=5, stall_ms=600_000)
    body = {"model": model, "messages": ask(stalling), "stream": True}
    with http.stream("POST", "/v1/chat/completions", json=body, timeout=PATIENCE_S) as response:
        text = ""
        for line in response.iter_lines():
            if line.startswith("data: "):
                text += json.loads(line.removeprefix("data: "))["choices"][0]["delta"].get("content", "")
            if len(text) >= 5:
                break
    assert "abcdefghijklmnopqrstuvwxyz".startswith(text)


def test_the_length_limit_is_told(client: openai.OpenAI, model: str) -> None:
    completion = client.chat.completions.create(model=model, messages=ask(FORTY), max_tokens=3)
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage is not None and completion.usage.completion_tokens == 3


def test_a_failure_in_mid_stream_is_an_error_and_then_the_end(client: openai.OpenAI, model: str) -> None:
    failing = script_text(text=LONG, fail_after=5)
    seen = ""
    with pytest.raises(openai.APIError) as caught:
        for chunk in client.chat.completions.create(model=model, messages=ask(failing), stream=True):
            seen += chunk.choices[0].delta.content or ""
    assert LONG.startswith(seen) and len(seen) < len(LONG)
    assert isinstance(caught.value.body, dict) and set(caught.value.body) == {
        "message",
        "type",
        "param",
        "code",
    }


def test_a_failed_stream_never_says_done(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "messages": ask(script_text(text=LONG, fail_after=5)), "stream": True}
    lines = [line for line in http.post("/v1/chat/completions", json=body).text.split("\n\n") if line]
    assert "error" in json.loads(lines[-1].removeprefix("data: "))
    assert "data: [DONE]" not in lines


def test_a_failed_whole_answer_is_a_server_error(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model=model, messages=ask(script_text(text=LONG, fail_after=2)))


def test_developer_is_system_and_parts_are_text(client: openai.OpenAI, model: str) -> None:
    parts = [{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}]
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]
    completion = client.chat.completions.create(model=model, messages=messages)
    assert completion.choices[0].message.content == "You said: two parts (2 words)"


def test_unknown_fields_are_ignored_and_listed(http: httpx2.Client, model: str) -> None:
    body = {
        "model": model,
        "messages": ask("hi"),
        "metadata": {"a": "b"},
        "zzz": 1,
        "temperature": None,
        "stop": None,
    }
    response = http.post("/v1/chat/completions", json=body)
    assert response.status_code == 200
    assert response.headers["x-ignored-fields"] == "metadata, zzz"


def test_a_follow_up_reuses_kept_computation(client: openai.OpenAI, model: str) -> None:
    question = ask(f"Remember the number {uuid4()}")
    options = {"model": model, "extra_body": {"prompt_cache_key": f"chat-{uuid4()}"}}
    first = client.chat.completions.create(messages=question, **options)
    history = [
        *question,
        {"role": "assistant", "content": first.choices[0].message.content},
        *ask("And now?"),
    ]
    second = client.chat.completions.create(messages=history, **options)
    assert second.usage is not None and second.usage.prompt_tokens_details is not None
    assert (second.usage.prompt_tokens_details.cached_tokens or 0) > 0
