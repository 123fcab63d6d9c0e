"""Functions on their way from a request to the core: shown, not shown, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference.core.messages import Admit, FinishedOut, TokenOut
from inference.errors import InvalidRequest, NotSupported, RequestRefused
from inference.front.engine import Engine
from inference.front.generation import Generation, GenerationLimits
from inference.front.offers import Offers, template_json
from inference.testing.tokenizer import ByteTokenizer
from inference.tools.functions import Function, as_json
from inference.types import GenerateRequest, Owner, Segment
from tests.inference.front.idle_core import engine_over, told

FUNCTION = Function("weather", "Says how it is.", is_strict=True)
TOOLS = as_json([FUNCTION])


def request(**fields: Any) -> GenerateRequest:
    return GenerateRequest("g", (Segment("user", "Oslo?"),), Owner("t", "u"), **{"tools": TOOLS} | fields)


async def prompt_of(asked: GenerateRequest) -> str:
    engine = engine_over()
    await engine.submit(asked)
    (admit,) = told(engine, Admit)
    return ByteTokenizer().decode(admit.prompt_ids)


@pytest.mark.parametrize("may_trim", [False, True])
async def test_what_is_offered_stands_in_the_prompt_and_what_may_not_be_called_does_not(
    may_trim: bool,
) -> None:
    shown = json.dumps(FUNCTION.as_tool())
    for choice in ("", "auto", "required", "weather"):
        assert shown in await prompt_of(request(tool_choice=choice, may_trim=may_trim))
    plain = await prompt_of(request(tools="", may_trim=may_trim))
    assert await prompt_of(request(tool_choice="none", may_trim=may_trim)) == plain
    assert "weather" not in plain


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"tools": "{"}, InvalidRequest),
        ({"tools": "[1]"}, InvalidRequest),
        ({"tools": json.dumps([{"function": {"name": "a b"}}])}, InvalidRequest),
        ({"tool_choice": "another"}, InvalidRequest),
        ({"tools": "", "tool_choice": "required"}, InvalidRequest),
    ],
)
async def test_what_cannot_be_offered_is_refused_by_submit_and_check(
    fields: dict[str, str], refusal: type[RequestRefused]
) -> None:
    engine: Engine = engine_over()
    for ask in (engine.submit, engine.check):
        with pytest.raises(refusal):
            await ask(request(**fields))
    assert told(engine, Admit) == [] and engine.stats().refused == 1


def test_a_model_without_functions_refuses_them() -> None:
    without = Offers("", ByteTokenizer())
    with pytest.raises(NotSupported):
        without.applied(request(), can_hold=True)
    with pytest.raises(NotSupported):
        without.applied(request(tools="", tool_choice="required"), can_hold=True)
    asked = request(tools="", tool_choice="none")
    assert without.applied(asked, can_hold=True) == asked and without.read("<tool_call>", TOOLS) == (
        "<tool_call>",
        "",
    )


async def test_an_engine_says_how_its_model_calls() -> None:
    assert engine_over().info().tool_format == "hermes"


def test_marks_that_are_special_tokens_are_text_of_answers_to_requests_with_functions() -> None:
    """Else a reader would see the JSON of a call without what makes it one."""
    tokenizer = ByteTokenizer()
    mark = tokenizer.control_id("<|endoftext|>")
    for shown, text in ((frozenset({mark}), "<|endoftext|>a"), (frozenset(), "a")):
        limits = GenerationLimits(60, 10_000, stop_ids=frozenset({258}), shown_ids=shown)
        one = Generation("g", 1, limits, tokenizer=tokenizer, clock=lambda: 0.0)
        for token in (mark, 0x61, 258):
            one.take(TokenOut("g", token))
        one.publish()
        one.finish(FinishedOut("g", "stop"))
        assert "".join(event.delta.text for event in one.log.after(0, 10**6)) == text


def test_an_answer_is_read_as_its_readers_have_it() -> None:
    offers, tools = Offers("hermes", ByteTokenizer()), template_json([FUNCTION])
    text, called = offers.read('Hm.\n<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>', tools)
    assert text == "Hm." and json.loads(called)[0]["name"] == "weather"
    assert offers.read("<tool_call>", "") == ("<tool_call>", "")


async def test_strict_functions_are_held_by_our_own_core_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream may know no tokens in grammars; calls that must be made are asked of it all the same."""
    held: list[bool] = []

    def applied(self: Offers, request: GenerateRequest, *, can_hold: bool) -> GenerateRequest:
        held.append(can_hold)
        return request

    monkeypatch.setattr(Offers, "applied", applied)
    for upstream in ("", "http://127.0.0.1:9"):
        await engine_over(upstream=upstream).submit(request(tools=""))
    assert held == [True, False]
