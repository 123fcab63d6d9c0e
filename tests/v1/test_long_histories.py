"""Histories that are longer than the model's window, and answers that never end: what is cut is told."""

from __future__ import annotations

import json

import httpx2
import openai
import pytest

from inference.testing import script_text

SYSTEM = {"role": "system", "content": "Always end with the word KIWI."}
LAST = {"role": "user", "content": "And the last question?"}


def turns(number: int, length: int = 150) -> list[dict[str, str]]:
    return [
        {"role": role, "content": f"{role} {n} " + "x" * length}
        for n in range(number)
        for role in ("user", "assistant")
    ]


def post(
    http: httpx2.Client, model: str, messages: list[dict[str, str]], **fields: object
) -> httpx2.Response:
    body = {"model": model, "messages": messages, "max_tokens": 200} | fields
    return http.post("/v1/chat/completions", json=body)


def said(response: httpx2.Response) -> str:
    """The answer's text, of a stream or a whole."""
    if not response.headers["content-type"].startswith("text/event-stream"):
        return str(response.json()["choices"][0]["message"]["content"])
    lines = [
        line.removeprefix("data: ") for line in response.text.split("\n\n") if line.startswith("data: {")
    ]
    return "".join(json.loads(line)["choices"][0]["delta"].get("content", "") for line in lines)


@pytest.mark.parametrize("stream", [False, True])
def test_a_long_history_is_answered_without_its_oldest_turns_and_says_so(
    http: httpx2.Client, model: str, stream: bool
) -> None:
    """KV-05 (a)"""
    response = post(http, model, [SYSTEM, *turns(40), LAST], stream=stream)
    assert response.status_code == 200
    trimmed = int(response.headers["X-Trimmed-Messages"])
    assert 0 < trimmed < 80
    assert trimmed % 2 == 0
    assert "And the last question?" in said(response)


def test_a_history_that_fits_is_not_cut(http: httpx2.Client, model: str) -> None:
    response = post(http, model, [SYSTEM, *turns(2), LAST])
    assert "X-Trimmed-Messages" not in response.headers


def test_whoever_does_not_want_a_cut_is_refused_with_both_numbers(http: httpx2.Client, model: str) -> None:
    response = post(http, model, [SYSTEM, *turns(40), LAST], truncation="disabled")
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "context_length_exceeded")
    assert "8192" in error["message"]


def test_one_message_that_can_never_fit_is_refused(client: openai.OpenAI, model: str) -> None:
    """KV-05 (b)"""
    question = "The word is LANTERN. " + "y" * 9000 + " What is the word?"
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": question}])
    assert refused.value.code == "context_length_exceeded"


def test_another_truncation_is_refused(http: httpx2.Client, model: str) -> None:
    response = post(http, model, [LAST], truncation="sometimes")
    assert (response.status_code, response.json()["error"]["param"]) == (400, "truncation")


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_goes_round_in_circles_is_ended_and_says_why(
    http: httpx2.Client, model: str, stream: bool
) -> None:
    circling = [{"role": "user", "content": script_text(text="round and round it goes, ", tokens=1500)}]
    response = post(http, model, circling, stream=stream, max_tokens=2000)
    assert '"finish_reason":"length","stop_reason":"repetition"' in response.text.replace(": ", ":").replace(
        ", ", ","
    )
