"""Call, result, answer: the official client against a real engine whose tiny model has a template with tools.

The model's weights are random, so what it has to call is held by its grammar; what it answers means nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.livesite import live_site
from tests.v1.test_tools import as_pairs

CITY = {"type": "object", "properties": {"city": {"enum": ["Oslo", "北京"]}}, "required": ["city"]}
TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": "weather", "description": "Says how it is.", "parameters": CITY},
    }
]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    from inference.models.tiny import write_tiny_embedder, write_tiny_model

    folder = tmp_path_factory.mktemp("models")
    model, embedder = (
        write_tiny_model(folder / "tiny", has_tools=True),
        write_tiny_embedder(folder / "embedder"),
    )
    flags = ("--model", str(model), "--embed-model", str(embedder))
    engine = ("inference", *flags, "--threads", "1", "--kv-memory-mb", "16")
    with (
        live_site("tools", engine, SEMCACHE_ENABLED="false") as site,
        openai.OpenAI(base_url=f"{site.url}/v1", api_key=site.key("ann"), max_retries=0) as client,
    ):
        yield client


def test_call_result_answer_with_a_model_that_computes(real: openai.OpenAI) -> None:
    name = real.models.list().data[0].id
    asked: Any = {"model": name, "tools": TOOLS, "temperature": 1, "max_tokens": 200, "seed": 3}
    named: Any = {"type": "function", "function": {"name": "weather"}}
    messages: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    for choice in ("required", named):
        whole = real.chat.completions.create(messages=messages, tool_choice=choice, **asked).choices[0]
        assert whole.finish_reason in ("tool_calls", "length")
        for function, arguments in as_pairs(whole.message):
            assert function == "weather" and json.loads(arguments)["city"] in ("Oslo", "北京")
    assert whole.finish_reason == "tool_calls" and len(whole.message.tool_calls or ()) == 1
    with real.chat.completions.stream(messages=messages, tool_choice=named, **asked) as stream:
        streamed = stream.get_final_completion().choices[0].message
    assert as_pairs(streamed) == as_pairs(whole.message)
    call = (whole.message.tool_calls or [])[0]
    messages += [whole.message, {"role": "tool", "tool_call_id": call.id, "content": "12 C"}]
    asked["max_tokens"] = 8
    answer = real.chat.completions.create(messages=messages, **asked)
    assert answer.choices[0].message.content and answer.usage is not None
    once: list[str] = []
    for chunk in real.chat.completions.create(messages=messages, stream=True, **asked):
        once += [choice.delta.content or "" for choice in chunk.choices]
    assert "".join(once) == answer.choices[0].message.content
    response = real.responses.create(
        model=name,
        input="How is the weather?",
        tools=[{"type": "function", "name": "weather", "parameters": CITY, "strict": True}],
        tool_choice={"type": "function", "name": "weather"},
    )
    assert [item.type for item in response.output] == ["function_call"]


def test_a_schema_that_cannot_be_held_is_refused(real: openai.OpenAI) -> None:
    name = real.models.list().data[0].id
    tools: Any = [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"properties": {"a": {"type": "banana"}}}},
        }
    ]
    with pytest.raises(openai.BadRequestError) as refusal:
        real.chat.completions.create(
            model=name, messages=[{"role": "user", "content": "x"}], tools=tools, tool_choice="required"
        )
    assert refusal.value.code == "invalid_grammar"
