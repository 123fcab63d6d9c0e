"""Text completions: raw prompts in, as the official client sees the answers."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from inference.testing import script_text

PATH = "/v1/completions"


def chunks_of(response: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line for line in response.text.split("\n\n") if line and not line.startswith(":")]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_a_prompt_goes_to_the_model_as_it_is(client: openai.OpenAI, model: str) -> None:
    completion = client.completions.create(model=model, prompt="Once upon", max_tokens=100)
    assert completion.object == "text_completion" and completion.model == model
    assert completion.choices[0].text == "You said: Once upon (2 words)"
    assert completion.choices[0].finish_reason == "stop" and completion.choices[0].logprobs is None
    assert completion.usage is not None
    assert completion.usage.prompt_tokens == len("Once upon"), "a template was put around it"


def test_without_a_limit_it_ends_after_sixteen_tokens(client: openai.OpenAI, model: str) -> None:
    completion = client.completions.create(model=model, prompt=script_text(tokens=40))
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage is not None and completion.usage.completion_tokens == 16


def test_prompts_and_choices_are_in_order_and_every_prompt_is_counted_once(
    client: openai.OpenAI, model: str
) -> None:
    completion = client.completions.create(model=model, prompt=["one", "two 2"], n=2, max_tokens=100)
    assert [choice.index for choice in completion.choices] == [0, 1, 2, 3]
    one, two = "You said: one (1 word)", "You said: two 2 (2 words)"
    assert [choice.text for choice in completion.choices] == [one, one, two, two]
    assert completion.usage is not None and completion.usage.prompt_tokens == len("one") + len("two 2")


def test_a_stream_says_the_same_as_a_whole_answer(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "prompt": ["one", "two"], "max_tokens": 100, "logprobs": 2}
    whole = http.post(PATH, json=body).json()
    streaming = body | {"stream": True, "stream_options": {"include_usage": True}}
    *chunks, usage = chunks_of(http.post(PATH, json=streaming))
    assert usage["choices"] == [] and usage["usage"] == whole["usage"]
    for choice in whole["choices"]:
        parts = [c["choices"][0] for c in chunks if c["choices"][0]["index"] == choice["index"]]
        assert "".join(part["text"] for part in parts) == choice["text"]
        assert [part["finish_reason"] for part in parts] == [None] * (len(parts) - 1) + ["stop"]
        for name, values in choice["logprobs"].items():
            assert [v for part in parts if part["logprobs"] for v in part["logprobs"][name]] == values


def test_logprobs_name_tokens_and_where_they_begin(client: openai.OpenAI, model: str) -> None:
    text = "Hé! 😀 end"
    completion = client.completions.create(
        model=model, prompt=script_text(text=text), max_tokens=100, logprobs=1
    )
    told = completion.choices[0].logprobs
    assert completion.choices[0].text == text and told is not None
    assert told.tokens and told.token_logprobs and told.text_offset and told.top_logprobs
    assert len(told.tokens) == len(told.token_logprobs) == len(told.text_offset) == len(told.top_logprobs)
    for token, offset in zip(told.tokens, told.text_offset, strict=True):
        assert "\ufffd" in token or text.startswith(token, offset)


def test_the_semantic_cache_knows_no_raw_prompts(http: httpx2.Client, model: str) -> None:
    for _ in range(2):
        response = http.post(PATH, json={"model": model, "prompt": "the same", "max_tokens": 50})
        assert response.headers["x-cache"] == "bypass"
    chat = {"model": model, "messages": [{"role": "user", "content": "the same"}], "max_tokens": 50}
    assert http.post("/v1/chat/completions", json=chat).headers["x-cache"] == "miss"


def test_a_failure_in_mid_stream_is_an_error_and_then_the_end(client: openai.OpenAI, model: str) -> None:
    failing = script_text(text="abc" * 20, fail_after=3)
    with pytest.raises(openai.APIError):
        list(client.completions.create(model=model, prompt=failing, stream=True, max_tokens=90))


WRONG: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "no prompt": ({"prompt": None}, 400, "prompt", "missing_required_parameter"),
    "no prompts": ({"prompt": []}, 400, "prompt", "missing_required_parameter"),
    "an empty prompt": ({"prompt": ""}, 400, "prompt", "invalid_value"),
    "an empty prompt in a list": ({"prompt": ["a", ""]}, 400, "prompt[1]", "invalid_value"),
    "token ids": ({"prompt": [1, 2]}, 400, "prompt", "token_arrays_not_supported"),
    "lists of token ids": ({"prompt": [[1], [2]]}, 400, "prompt", "token_arrays_not_supported"),
    "nine prompts": ({"prompt": ["x"] * 9}, 400, "prompt", "array_above_max_length"),
    "nine answers": ({"prompt": ["x"] * 3, "n": 3}, 400, "n", "out_of_range"),
    "a long prompt": ({"prompt": "x" * 300_000}, 413, "prompt", "message_too_long"),
    "a prompt past the window": ({"prompt": "x" * 9000}, 400, "", "context_length_exceeded"),
    "echo": ({"echo": True}, 400, "echo", "unsupported_parameter"),
    "suffix": ({"suffix": "x"}, 400, "suffix", "unsupported_parameter"),
    "best_of": ({"best_of": 2}, 400, "best_of", "unsupported_parameter"),
    "logprobs 21": ({"logprobs": 21}, 400, "logprobs", "out_of_range"),
    "logprobs true": ({"logprobs": True}, 400, "logprobs", "invalid_type"),
    "max_tokens 0": ({"max_tokens": 0}, 400, "max_tokens", "out_of_range"),
    "no model": ({"model": None}, 400, "model", "missing_required_parameter"),
    "unknown model": ({"model": "nobody"}, 404, "model", "model_not_found"),
}


@pytest.mark.parametrize(("fields", "status", "param", "code"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("stream", [False, True])
def test_a_field_that_is_wrong_is_named(
    http: httpx2.Client, model: str, fields: dict[str, Any], status: int, param: str, code: str, stream: bool
) -> None:
    response = http.post(PATH, json={"model": model, "prompt": "hi", "stream": stream} | fields)
    error = response.json()["error"]
    assert (response.status_code, error["param"] or "", error["code"]) == (status, param, code)
