"""Functions at `/v1/chat/completions`, as the official client sees them: calls, results, streams, and what is refused.

The scripted engine writes calls as its template has them; which text is one is `inference.tools`' matter.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest

from chatsite.chat.turn import Caller
from chatsite.v1.errors import ApiError
from chatsite.v1.schema import parse_chat
from chatsite.v1.tools import chat_offer
from chatsite.v1.turns import chat_turns
from inference.testing import script_text
from inference.types import EngineInfo
from tests.v1.test_chat import ask, chunks_of

CHAT = "/v1/chat/completions"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {
    "type": "function",
    "function": {"name": "weather", "description": "Says how the weather is.", "parameters": SCHEMA},
}
ADD: Any = {"type": "function", "function": {"name": "add"}}
ARGUMENTS = '{"city": "奥斯陆 \\"O\\""}'


def written(arguments: str = ARGUMENTS, name: str = "weather") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def says(text: str) -> list[Any]:
    """The question whose answer is `text`."""
    return ask(script_text(text=text))


def called(client: openai.OpenAI, model: str, text: str, **fields: Any) -> tuple[Any, Any]:
    """The message as it is whole, and as it is put together from its stream by the client."""
    asked: Any = {"model": model, "messages": says(text), "tools": [WEATHER, ADD]} | fields
    whole = client.chat.completions.create(**asked).choices[0]
    with client.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion().choices[0]
    assert streamed.finish_reason == whole.finish_reason
    assert (streamed.message.content or "") == (whole.message.content or "")
    assert as_pairs(streamed.message) == as_pairs(whole.message)
    return whole, streamed


def as_pairs(message: Any) -> list[tuple[str, str]]:
    return [(call.function.name, call.function.arguments) for call in message.tool_calls or []]


def test_a_call_is_a_name_and_arguments_as_a_text(client: openai.OpenAI, model: str) -> None:
    for choice in called(client, model, written()):
        assert choice.finish_reason == "tool_calls" and not choice.message.content
        (call,) = choice.message.tool_calls
        assert call.type == "function" and call.id.startswith("call_")
        assert (call.function.name, call.function.arguments) == ("weather", ARGUMENTS)


def test_text_comes_before_calls_and_each_call_has_an_id_of_its_own(
    client: openai.OpenAI, model: str
) -> None:
    whole, _ = called(client, model, f"Let me see.\n{written()}\n{written('{}', 'add')}")
    assert whole.message.content == "Let me see." and whole.finish_reason == "tool_calls"
    first, second = whole.message.tool_calls
    assert (first.function.name, second.function.name) == ("weather", "add") and first.id != second.id


@pytest.mark.parametrize(
    "text",
    [
        "Only <tool_call> in words.",
        "An opening that ends it: <tool_call>",
        written('{"city": Oslo}'),
        written('{"city": "Oslo"'),
        written("[1]"),
        written(name="rm_rf"),
        written('{"city": "\\ud800"}'),
    ],
)
def test_what_is_no_call_is_content_to_the_letter(client: openai.OpenAI, model: str, text: str) -> None:
    """Broken JSON, half a call, a function that nobody offered: never an error, never a call."""
    whole, _ = called(client, model, text)
    assert (whole.message.content, whole.message.tool_calls, whole.finish_reason) == (text, None, "stop")


def test_without_tools_or_with_none_to_be_called_a_call_is_text(client: openai.OpenAI, model: str) -> None:
    plain = client.chat.completions.create(model=model, messages=says(written())).choices[0]
    none, _ = called(client, model, written(), tool_choice="none")
    assert plain.message.content == none.message.content == written()
    assert plain.finish_reason == none.finish_reason == "stop"


def test_one_call_at_most_where_more_are_not_wanted(client: openai.OpenAI, model: str) -> None:
    text = f"Well.\n{written()}\n{written('{}', 'add')}\nAnd more."
    whole, _ = called(client, model, text, parallel_tool_calls=False)
    assert as_pairs(whole.message) == [("weather", ARGUMENTS)] and whole.message.content == "Well."


def test_a_stream_names_the_call_first_and_then_its_arguments(http: httpx2.Client, model: str) -> None:
    """OpenAI's order, with indexes; the role comes first, the reason last, and all pieces are texts."""
    long = json.dumps({"city": " ".join(map(str, range(300)))})
    body = {
        "model": model,
        "messages": says(f"Hm.\n{written(long)}\n{written()}"),
        "tools": [WEATHER],
        "stream": True,
    }
    role, *middle, last, usage = chunks_of(
        http.post(CHAT, json=body | {"stream_options": {"include_usage": True}})
    )
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "tool_calls")
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] > 0
    deltas = [chunk["choices"][0]["delta"] for chunk in middle]
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in middle)
    texts = [delta["content"] for delta in deltas if "content" in delta]
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert "".join(texts) == "Hm." and deltas[: len(texts)] == [{"content": text} for text in texts]
    for index, arguments in enumerate((long, ARGUMENTS)):
        first, *rest = [call for call in calls if call["index"] == index]
        assert first["id"].startswith("call_") and first["type"] == "function"
        assert first["function"] == {"name": "weather", "arguments": ""}
        assert all(set(piece) == {"index", "function"} for piece in rest)
        assert "".join(piece["function"]["arguments"] for piece in rest) == arguments
    assert sum(call["index"] == 0 for call in calls) > 3


def test_every_choice_makes_its_own_calls_and_usage_counts_them(client: openai.OpenAI, model: str) -> None:
    completion = client.chat.completions.create(model=model, messages=says(written()), tools=[WEATHER], n=2)
    ids = {choice.message.tool_calls[0].id for choice in completion.choices if choice.message.tool_calls}
    assert len(ids) == 2 and completion.usage is not None
    one = client.chat.completions.create(model=model, messages=says(written()), tools=[WEATHER])
    assert one.usage is not None and completion.usage.completion_tokens == 2 * one.usage.completion_tokens
    assert one.usage.prompt_tokens == completion.usage.prompt_tokens
    bare = client.chat.completions.create(model=model, messages=says(written()))
    assert bare.usage is not None and bare.usage.prompt_tokens < one.usage.prompt_tokens


def test_logprobs_of_a_stream_with_calls_are_those_of_the_whole(http: httpx2.Client, model: str) -> None:
    body = {"model": model, "messages": says(f"So.\n{written()}"), "tools": [WEATHER], "logprobs": True}
    whole = http.post(CHAT, json=body).json()["choices"][0]["logprobs"]["content"]
    streamed = [
        chunk["choices"][0]["logprobs"] for chunk in chunks_of(http.post(CHAT, json=body | {"stream": True}))
    ]
    assert [token for told in streamed for token in (told or {"content": []})["content"]] == whole


def test_a_call_that_was_cut_is_no_call(client: openai.OpenAI, model: str) -> None:
    asked: Any = {"model": model, "messages": says(written()), "tools": [WEATHER], "max_tokens": 10}
    whole = client.chat.completions.create(**asked).choices[0]
    assert whole.finish_reason == "length" and whole.message.tool_calls is None
    streamed = [chunk.choices[0] for chunk in client.chat.completions.create(**asked, stream=True)]
    assert "".join(choice.delta.content or "" for choice in streamed) == whole.message.content
    assert written().startswith(whole.message.content or "-") and streamed[-1].finish_reason == "length"


# --- results


TURN: list[Any] = [
    {"role": "user", "content": "Weather in Oslo?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "12 C"},
]


def test_a_result_reaches_the_model_however_the_calling_message_says_nothing(
    http: httpx2.Client, model: str
) -> None:
    """AP-01: content null, absent, "" and []; neither word for nothing enters the prompt."""
    answers = []
    for content in ({"content": None}, {}, {"content": ""}, {"content": []}):
        calling = {name: value for name, value in TURN[1].items() if name != "content"} | content
        for tools in ({}, {"tools": [WEATHER]}):
            body = {"model": model, "messages": [TURN[0], calling, TURN[2]]} | tools
            response = http.post(CHAT, json=body)
            assert response.status_code == 200, response.text
            answers.append(response.json()["choices"][0]["message"]["content"])
    assert set(answers) == {"You said: \n<tool_response>\n12 C\n</tool_response> (4 words)"} or all(
        "12 C" in answer and "None" not in answer and "null" not in answer for answer in answers
    )
    for wrong in (None, []):
        response = http.post(CHAT, json={"model": model, "messages": [{"role": "user", "content": wrong}]})
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "messages[0].content"


def test_call_result_answer_is_a_conversation_of_the_official_client(
    client: openai.OpenAI, model: str
) -> None:
    messages: list[Any] = says(written())
    first = client.chat.completions.create(model=model, messages=messages, tools=[WEATHER]).choices[0].message
    assert first.tool_calls
    messages += [first, {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "12 C"}]
    second = client.chat.completions.create(model=model, messages=messages, tools=[WEATHER]).choices[0]
    assert "12 C" in (second.message.content or "") and second.finish_reason == "stop"


def test_histories_keep_calls_and_results_apart_and_in_order() -> None:
    """AP-03 and its kin: neighbours of a role are one message, but a call and a result stay what they are."""
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "Let me see."},
        TURN[1],
        TURN[2],
        {
            "role": "tool",
            "tool_call_id": "call_2",
            "content": [{"type": "text", "text": "1"}, {"type": "text", "text": "3"}],
        },
        TURN[1] | {"content": "Again."},
        {"role": "assistant", "content": "Done."},
    ]
    (turn,) = turns(messages=messages)
    assert [(s.role, s.text, bool(s.tool_calls), s.tool_call_id) for s in turn.segments] == [
        ("system", "Be brief.\n\nBe kind.", False, ""),
        ("user", "a\n\nb", False, ""),
        ("assistant", "Let me see.", True, ""),
        ("tool", "12 C", False, "call_1"),
        ("tool", "13", False, "call_2"),
        ("assistant", "Again.", True, ""),
        ("assistant", "Done.", False, ""),
    ]


@pytest.mark.parametrize("fields", [{"tools": [WEATHER]}, {"messages": TURN}], ids=["tools", "a result"])
def test_the_semantic_cache_has_no_part_in_it(
    http: httpx2.Client, model: str, fields: dict[str, Any]
) -> None:
    body = {"model": model, "messages": ask(f"What is {uuid4()}?")} | fields
    assert [http.post(CHAT, json=body).headers["x-cache"] for _ in range(2)] == ["bypass", "bypass"]
    (turn,) = turns(**fields)
    assert not turn.cache.may_read and not turn.cache.may_store
    (plain,) = turns()
    assert plain.cache.may_read and plain.cache.may_store


# --- what is asked of the engine, and what is refused

INFO = EngineInfo("e", "m", "r", "t", 4096, 512, "", "", "", 0, 0, False, 0.7, tool_format="hermes")


def turns(info: EngineInfo = INFO, **fields: Any) -> list[Any]:
    request = parse_chat({"model": "m", "messages": ask("Hi")} | fields)
    return chat_turns(request, "", Caller(1, "1"), info, chat_offer(request, info))


def test_a_choice_reaches_the_engine() -> None:
    named = {"type": "function", "function": {"name": "add"}}
    for given, told in (
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        (named, "add"),
        (None, "auto"),
    ):
        (turn,) = turns(tools=[WEATHER, ADD], tool_choice=given)
        assert turn.tool_choice == told and [tool["function"]["name"] for tool in json.loads(turn.tools)] == [
            "weather",
            "add",
        ]
    for nothing in ({}, {"tools": None}, {"tools": []}, {"tool_choice": "auto"}, {"tool_choice": "none"}):
        assert [(turn.tools, turn.tool_choice) for turn in turns(**nothing)] == [("", "")]
    (strict,) = turns(tools=[{"type": "function", "function": {"name": "a", "strict": True}}])
    assert json.loads(strict.tools)[0]["function"]["strict"] is True


def function(**fields: Any) -> dict[str, Any]:
    return {"tools": [ADD, {"type": "function", "function": {"name": "f"} | fields}]}


def result(**fields: Any) -> dict[str, Any]:
    return {"messages": [TURN[0], TURN[1] | fields, TURN[2]]}


def call(**fields: Any) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"} | fields}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no object": ({"tools": ["f"]}, "tools[0]"),
    "no list": ({"tools": {"type": "function"}}, "tools"),
    "another kind of tool": ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    "no kind": ({"tools": [{"function": {"name": "f"}}]}, "tools[0].type"),
    "no function": ({"tools": [{"type": "function"}]}, "tools[0].function"),
    "no name": (function(name=None), "tools[1].function.name"),
    "a long name": (function(name="f" * 65), "tools[1].function.name"),
    "a name with a blank": (function(name="a b"), "tools[1].function.name"),
    "a name twice": (function(name="add"), "tools[1]"),
    "a description that is no text": (function(description=1), "tools[1].function.description"),
    "a schema of no object": (function(parameters={"type": "array"}), "tools[1].function.parameters"),
    "a schema that is none": (function(parameters=[1]), "tools[1].function.parameters"),
    "too many": ({"tools": [{"type": "function", "function": {"name": f"f{n}"}} for n in range(129)]}, "tools"),
    "too large": (function(description="x" * 600_000), "tools"),
    "an unknown choice": ({"tools": [ADD], "tool_choice": "always"}, "tool_choice"),
    "a choice of nothing": ({"tools": [ADD], "tool_choice": {"type": "function"}}, "tool_choice"),
    "a choice that is not offered": (
        {"tools": [ADD], "tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice",
    ),
    "required without tools": ({"tool_choice": "required"}, "tool_choice"),
    "a choice that is no choice": ({"tool_choice": 1}, "tool_choice"),
    "parallel that is no boolean": ({"tools": [ADD], "parallel_tool_calls": "no"}, "parallel_tool_calls"),
    "functions": ({"functions": [{"name": "f"}]}, "functions"),
    "function_call": ({"function_call": "auto"}, "function_call"),
    "calls of a user": ({"messages": [TURN[0] | {"tool_calls": [call()]}]}, "messages[0].tool_calls"),
    "a call without a function": (result(tool_calls=[{"id": "c"}]), "messages[1].tool_calls[0]"),
    "a call of another type": (result(tool_calls=[call() | {"type": "custom"}]), "messages[1].tool_calls[0].type"),
    "a call without a name": (result(tool_calls=[call(name="")]), "messages[1].tool_calls[0].function.name"),
    "arguments that are an object": (
        result(tool_calls=[call(arguments={})]), "messages[1].tool_calls[0].function.arguments",
    ),
    "arguments that are no JSON": (
        result(tool_calls=[call(arguments="{")]), "messages[1].tool_calls[0].function.arguments",
    ),
    "arguments that are a list": (
        result(tool_calls=[call(arguments="[]")]), "messages[1].tool_calls[0].function.arguments",
    ),
    "too many calls": (result(tool_calls=[call()] * 129), "messages[1].tool_calls"),
    "a result without content": ({"messages": [*TURN[:2], TURN[2] | {"content": None}]}, "messages[2].content"),
    "a role of old": ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
}  # fmt: skip


def test_what_is_wrong_is_named() -> None:
    """AP-06 in kind: every field that is wrong is a 400 with its path."""
    for name, (fields, param) in WRONG.items():
        with pytest.raises(ApiError) as refusal:
            turns(**fields)
        assert (refusal.value.status, refusal.value.param) == (400, param), name


def test_arguments_are_nested_as_deep_as_they_like_and_never_an_error_of_ours(
    http: httpx2.Client, model: str
) -> None:
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    response = http.post(CHAT, json={"model": model} | result(tool_calls=[call(arguments=deep)]))
    assert response.status_code in (400, 413)


def test_a_model_without_tools_says_so_at_every_place() -> None:
    """As the trial model: its template shows no functions. A choice of nothing asks for nothing."""
    bare = EngineInfo("e", "m", "r", "t", 4096, 512, "", "", "", 0, 0, False, 0.7)
    for fields, param in (
        ({"tools": [ADD]}, "tools"),
        ({"messages": TURN}, "messages[1].tool_calls"),
        ({"messages": [TURN[2]]}, "messages[0].role"),
    ):
        with pytest.raises(ApiError) as refusal:
            turns(bare, **fields)
        assert (refusal.value.status, refusal.value.code, refusal.value.param) == (
            400,
            "tools_not_supported",
            param,
        )
    assert turns(bare, tools=[], tool_choice="auto")[0].tools == ""
