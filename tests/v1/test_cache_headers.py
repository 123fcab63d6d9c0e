"""What the semantic cache does for /v1, and how a client steers it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx2
import pytest

CHAT = "/v1/chat/completions"


@pytest.fixture
def ask(http: httpx2.Client, model: str) -> Any:
    def asking(text: str, cache_control: str = "", **fields: Any) -> httpx2.Response:
        body = {"model": model, "messages": [{"role": "user", "content": text}], "temperature": 0} | fields
        headers = {"Cache-Control": cache_control} if cache_control else {}
        return http.post(CHAT, json=body, headers=headers)

    return asking


def text_of(response: httpx2.Response) -> str:
    return response.json()["choices"][0]["message"]["content"]


def test_the_same_question_again_is_an_exact_hit(ask: Any) -> None:
    question = f"What is {uuid4()}?"
    first, second = ask(question), ask(question)
    assert (first.headers["x-cache"], second.headers["x-cache"]) == ("miss", "hit-exact")
    assert "age" not in first.headers and int(second.headers["age"]) >= 0
    assert text_of(first) == text_of(second)
    assert second.json()["usage"]["completion_tokens"] == first.json()["usage"]["completion_tokens"]


def test_a_streamed_hit_names_itself_in_the_headers(ask: Any) -> None:
    question = f"What is {uuid4()}?"
    whole = ask(question)
    streamed = ask(question, stream=True)
    assert streamed.headers["x-cache"] == "hit-exact" and "age" in streamed.headers
    assert streamed.text.endswith("data: [DONE]\n\n")
    assert text_of(whole)[:5] in streamed.text


def test_system_and_developer_share_their_answers(ask: Any) -> None:
    question = {"role": "user", "content": f"What is {uuid4()}?"}
    first = ask("", messages=[{"role": "system", "content": "Be brief."}, question])
    second = ask("", messages=[{"role": "developer", "content": "Be brief."}, question])
    assert (first.headers["x-cache"], second.headers["x-cache"]) == ("miss", "hit-exact")


def test_no_cache_is_not_served_from_the_cache(ask: Any) -> None:
    question = f"What is {uuid4()}?"
    ask(question)
    assert ask(question, "no-cache").headers["x-cache"] != "hit-exact"
    assert ask(question, cache={"no-cache": True}).headers["x-cache"] != "hit-exact"


def test_no_store_leaves_nothing_behind(ask: Any) -> None:
    question = f"What is {uuid4()}?"
    ask(question, "no-store")
    assert ask(question).headers["x-cache"] == "miss"


@pytest.mark.parametrize("streams", [False, True])
def test_only_if_cached_is_504_on_a_miss_and_the_answer_on_a_hit(ask: Any, streams: bool) -> None:
    question = f"What is {uuid4()}?"
    missed = ask(question, "only-if-cached", stream=streams)
    assert missed.status_code == 504
    assert missed.json()["error"]["code"] == "not_cached"
    assert missed.headers["x-should-retry"] == "false"
    ask(question)
    assert ask(question, "only-if-cached", stream=streams).headers["x-cache"] == "hit-exact"
