"""Several choices, logprobs and biases: what is told, what it costs, and that the semantic cache stays out of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest

from chatsite.chat.reply import engine_request
from chatsite.chat.semantic import canonical
from chatsite.chat.turn import Caller, Turn
from chatsite.v1.schema import parse_chat
from chatsite.v1.turns import chat_turns
from inference.testing import script_text
from inference.types import EngineInfo
from tests.livesite import LiveSite
from tests.patience import PATIENCE_S

CHAT = "/v1/chat/completions"
INFO = EngineInfo(
    "e", "m", "r", "t", 100, 100, "fp32", "cpu", "", 0, 1, is_trial_model=False, default_temperature=0.0
)


def ask(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def turns(**fields: Any) -> list[Turn]:
    return chat_turns(parse_chat({"model": "m", "messages": ask("Hi")} | fields), "", Caller(1, "1"), INFO)


def chunks_of(response: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line for line in response.text.split("\n\n") if line and not line.startswith(":")]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


# --- n


def test_every_choice_is_an_answer_of_its_own_and_the_prompt_is_counted_once(
    client: openai.OpenAI, model: str
) -> None:
    one = client.chat.completions.create(model=model, messages=ask("three times"))
    three = client.chat.completions.create(model=model, messages=ask("three times"), n=3)
    assert [choice.index for choice in three.choices] == [0, 1, 2]
    assert {choice.message.content for choice in three.choices} == {"You said: three times (2 words)"}
    assert one.usage is not None and three.usage is not None
    assert three.usage.prompt_tokens == one.usage.prompt_tokens
    assert three.usage.completion_tokens == 3 * one.usage.completion_tokens
    assert three.usage.total_tokens == three.usage.prompt_tokens + three.usage.completion_tokens


def test_streamed_choices_come_side_by_side_and_each_in_the_order_of_one(
    http: httpx2.Client, model: str
) -> None:
    slow = script_text(text="abcdefghijkl" * 4, delay_ms=15)
    body = {"model": model, "messages": ask(slow), "n": 2, "stream": True}
    *chunks, usage = chunks_of(http.post(CHAT, json=body | {"stream_options": {"include_usage": True}}))
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] == 2 * 16
    told = [chunk["choices"][0] for chunk in chunks]
    for index in (0, 1):
        role, *content, last = (choice for choice in told if choice["index"] == index)
        assert role["delta"]["role"] == "assistant" and last["finish_reason"] == "stop"
        assert "".join(choice["delta"]["content"] for choice in content) == "abcdefghijkl" * 4
        assert all(choice["finish_reason"] is None for choice in content)
    order = [choice["index"] for choice in told]
    assert order != sorted(order), "one choice was held back until the other had ended"


def test_the_official_client_reads_streamed_choices(client: openai.OpenAI, model: str) -> None:
    texts: Counter[int] = Counter()
    for chunk in client.chat.completions.create(model=model, messages=ask("hi"), n=8, stream=True):
        texts[chunk.choices[0].index] += len(chunk.choices[0].delta.content or "")
    assert set(texts) == set(range(8)) and len(set(texts.values())) == 1


def test_one_choice_that_fails_ends_the_response_as_an_error(http: httpx2.Client, model: str) -> None:
    failing = {"model": model, "messages": ask(script_text(text="abc" * 20, fail_after=3)), "n": 2}
    assert http.post(CHAT, json=failing).status_code == 500
    lines = http.post(CHAT, json=failing | {"stream": True}).text.split("\n\n")
    assert "error" in json.loads([line for line in lines if line][-1].removeprefix("data: "))


def test_every_choice_is_booked(site: LiveSite, model: str) -> None:
    key = site.key("choosy")
    headers = {"Authorization": f"Bearer {key}"}
    body = {"model": model, "messages": ask("hi"), "n": 4}
    assert httpx2.post(f"{site.url}{CHAT}", json=body, headers=headers, timeout=PATIENCE_S).status_code == 200
    booked = site.sql("SELECT count(*) FROM accounts_usagerecord WHERE user_id = %s", site.user("choosy"))
    assert booked == [(4,)]


def test_choices_that_do_not_all_fit_into_the_limit_are_not_asked_at_all(
    site: LiveSite, http: httpx2.Client, model: str
) -> None:
    """The limit is 16; so many are made already that 8 more would pass it."""
    assert http.post(CHAT, json={"model": model, "messages": ask("hi")}).status_code == 200
    user = site.user("greedy")
    headers = {"Authorization": f"Bearer {site.key('greedy')}"}
    site.sql(
        """INSERT INTO chat_generation SELECT (jsonb_populate_record(null::chat_generation, to_jsonb(one)
           || jsonb_build_object('id', gen_random_uuid(), 'user_id', %s::bigint, 'state', 'running',
              'message_id', null, 'api_key_id', null, 'lease_until', now() + interval '1 hour', 'finished_at', null,
              'deadline_at', now() + interval '1 hour'))).*
           FROM (SELECT * FROM chat_generation LIMIT 1) one, generate_series(1, 9)""",
        user,
    )
    body = {"model": model, "messages": ask("hi")}
    many = httpx2.post(f"{site.url}{CHAT}", json=body | {"n": 8}, headers=headers, timeout=PATIENCE_S)
    assert (many.status_code, many.json()["error"]["code"]) == (429, "rate_limited")
    assert int(many.headers["retry-after"]) > 0
    few = httpx2.post(f"{site.url}{CHAT}", json=body | {"n": 7}, headers=headers, timeout=PATIENCE_S)
    assert few.status_code == 200
    counted = site.sql("SELECT count(*) FROM accounts_usagerecord WHERE user_id = %s", user)
    assert counted == [(7,)], "nothing of the refused request was made"


def test_choices_share_the_prompt_and_have_seeds_of_their_own() -> None:
    asked = [engine_request(turn) for turn in turns(n=3, seed=5)]
    assert len({request.segments for request in asked}) == 1
    assert len({request.sampling.seed for request in asked}) == 3
    assert len({request.generation_id for request in asked}) == 3


# --- logprobs


def test_logprobs_are_told_token_by_token(client: openai.OpenAI, model: str) -> None:
    text = script_text(text="Hé! 😀")
    completion = client.chat.completions.create(
        model=model, messages=ask(text), logprobs=True, top_logprobs=2
    )
    choice = completion.choices[0]
    assert choice.logprobs is not None and choice.logprobs.content is not None
    assert b"".join(bytes(token.bytes or []) for token in choice.logprobs.content).decode() == "Hé! 😀"
    assert completion.usage is not None
    assert len(choice.logprobs.content) == completion.usage.completion_tokens
    for token in choice.logprobs.content:
        assert math.isclose(token.logprob, -0.5, abs_tol=1e-6)
        assert len(token.top_logprobs) == 2 and token.top_logprobs[0].token == token.token


def test_a_stream_tells_the_same_logprobs(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "messages": ask(script_text(tokens=40)), "logprobs": True, "top_logprobs": 1}
    whole = http.post(CHAT, json=body).json()["choices"][0]
    streamed = [chunk["choices"][0] for chunk in chunks_of(http.post(CHAT, json=body | {"stream": True}))]
    content = [token for choice in streamed for token in (choice["logprobs"] or {"content": []})["content"]]
    assert content == whole["logprobs"]["content"] and len(content) == 40
    for choice in streamed:
        if text := choice["delta"].get("content"):
            tokens = choice["logprobs"]["content"]
            assert b"".join(bytes(token["bytes"]) for token in tokens).decode() == text


def test_logprobs_without_alternatives(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "messages": ask("hi"), "logprobs": True}
    content = http.post(CHAT, json=body).json()["choices"][0]["logprobs"]["content"]
    assert content and all(token["top_logprobs"] == [] for token in content)


# --- what the engine is asked for


def test_biases_ends_and_priority_reach_the_engine() -> None:
    (turn,) = turns(
        logit_bias={"7": -100, "3": 2.5}, min_tokens=4, stop_token_ids=[9], priority=3, speculate=False
    )
    asked = engine_request(turn)
    assert asked.sampling.logit_bias == ((3, 2.5), (7, -100))
    assert (asked.sampling.min_tokens, asked.sampling.stop_ids, asked.priority) == (4, (9,), 3)
    assert asked.sampling.speculate is False
    # It changes no answer, so it keeps none apart.
    assert canonical(asked.sampling) == canonical(replace(asked.sampling, speculate=None))


def test_a_token_that_the_model_does_not_have_is_refused(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "messages": ask("hi"), "logit_bias": {"300": 1}}
    response = http.post(CHAT, json=body)
    assert response.status_code == 400 and "300" in response.json()["error"]["message"]


# --- the semantic cache

PAST_THE_CACHE: dict[str, dict[str, Any]] = {
    "two choices": {"n": 2},
    "logprobs": {"logprobs": True},
    "a bias": {"logit_bias": {"65": 1}},
}


@pytest.mark.parametrize("fields", PAST_THE_CACHE.values(), ids=PAST_THE_CACHE)
def test_what_the_cache_cannot_answer_is_neither_read_nor_stored(
    http: httpx2.Client, model: str, fields: dict[str, Any]
) -> None:
    def asking(**more: Any) -> httpx2.Response:
        return http.post(CHAT, json={"model": model, "messages": ask(question)} | more)

    question = f"What is {uuid4()}?"
    first, second = asking(**fields), asking(**fields)
    assert [one.headers["x-cache"] for one in (first, second)] == ["bypass", "bypass"]
    assert asking().headers["x-cache"] == "miss", "it was stored for those who ask without"
    assert asking().headers["x-cache"] == "hit-exact"
    assert asking(**fields).headers["x-cache"] == "bypass"
    assert asking(**fields, cache={"only-if-cached": True}).status_code == 504


@pytest.mark.parametrize("fields", PAST_THE_CACHE.values(), ids=PAST_THE_CACHE)
def test_every_choice_keeps_out_of_the_cache_and_a_plain_question_does_not(fields: dict[str, Any]) -> None:
    assert not any(turn.cache.may_read or turn.cache.may_store for turn in turns(**fields))
    assert all(turn.cache.may_read and turn.cache.may_store for turn in turns())
