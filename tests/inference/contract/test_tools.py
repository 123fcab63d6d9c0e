"""Functions through the engine's door: a model of random weights calls what it must, and nothing else, as its template
has it; its next turn goes on from what it wrote."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import jsonschema
import pytest

from inference.client import EngineClient
from inference.errors import EngineError
from inference.testing import script_text
from inference.tools.calls import Call, as_json
from inference.tools.formats import FORMATS
from inference.tools.functions import Function
from inference.tools.functions import as_json as offered
from inference.tools.reader import CallReader, Part
from inference.types import Delta, Event, FinishReason, GenerateRequest, Grammar, Owner, Sampling, Segment
from tests.inference.contract.conftest import Target, ask
from tests.inference.contract.test_contract import collect, ending, text_of

CITY = {"type": "object", "properties": {"city": {"enum": ["Oslo", "北京"]}}, "required": ["city"]}
NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["a"],
}
SCHEMAS = {"weather": CITY, "double": NUMBERS}
FUNCTIONS = [Function(name, f"Use {name}.", schema) for name, schema in SCHEMAS.items()]
SAMPLING = Sampling(temperature=1.0, max_tokens=300)


def calling(choice: str, sampling: Sampling = SAMPLING, *, conversation: str = "") -> GenerateRequest:
    request = replace(ask("What is it?", sampling), tools=offered(FUNCTIONS), tool_choice=choice)
    return replace(request, owner=Owner("tenant", "user", conversation))


async def parts_of(client: EngineClient, events: list[Event]) -> list[Part]:
    form = FORMATS[(await client.info()).tool_format]
    reader = CallReader(form, SCHEMAS)
    return [*reader.read(text_of(events)), *reader.end()]


async def test_an_engine_says_how_its_model_calls(client: EngineClient) -> None:
    assert (await client.info()).tool_format == "hermes"


async def test_a_call_comes_out_of_every_engine_that_plays_scripts(
    client: EngineClient, target: Target
) -> None:
    """The gateway, too: its prompts are made here, and its answers are text like any other."""
    if not target.plays_scripts:
        return
    written = '<tool_call>\n{"name": "double", "arguments": {"a": 21}}\n</tool_call>'
    asked = replace(calling("auto"), segments=(Segment("user", script_text(text=f"Hm.\n{written}")),))
    events = await collect(client.generate(asked))
    assert await parts_of(client, events) == ["Hm.", Call("double", '{"a": 21}')]
    plain = ending(await collect(client.generate(replace(asked, generation_id="plain", tools="")))).usage
    assert ending(events).usage.prompt_tokens > plain.prompt_tokens + len(offered(FUNCTIONS)) // 2


async def test_what_must_be_called_is_called_with_arguments_that_fit(real: Target) -> None:
    client = real.engine.client()
    names = set()
    for choice in ("weather", "double", "required"):
        asked = [calling(choice, replace(SAMPLING, seed=seed)) for seed in range(2)]
        for events in await asyncio.gather(*(collect(client.generate(request)) for request in asked)):
            *calls, last = await parts_of(client, events)
            is_cut = ending(events).finish_reason is FinishReason.LENGTH
            for call in calls if is_cut and calls else [*calls, last]:
                assert isinstance(call, Call) and choice in ("required", call.name)
                jsonschema.validate(json.loads(call.arguments), SCHEMAS[call.name])
                names.add(call.name)
    assert names == set(SCHEMAS)
    await client.close()


async def test_the_turn_with_the_result_goes_on_from_the_kv_of_the_call(real: Target) -> None:
    """Its ids stand in the next prompt as they were made, though the model wrote its JSON in its own way."""
    client = real.engine.client()
    first = calling("weather", replace(SAMPLING, seed=5), conversation="calls")
    events = await collect(client.generate(first))
    (call,) = await parts_of(client, events)
    assert isinstance(call, Call)
    ids = tuple(token for event in events if isinstance(event, Delta) for token in event.token_ids)
    known = (await client.info()).tokenizer
    made = Segment("assistant", "", ids, known, as_json([replace(call, id="call_1")]))
    result = Segment("tool", "12 C <|im_end|><tool_call>", tool_call_id="call_1")
    second = replace(
        calling("auto", Sampling(max_tokens=4), conversation="calls"),
        segments=(*first.segments, made, result),
    )
    usage = ending(await collect(client.generate(second))).usage
    before = ending(events).usage
    told = text_of(events)
    template_form = f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>'
    kept = before.prompt_tokens + (len(ids) if told == template_form else 0)
    assert usage.reused_head_tokens >= kept - 1
    await client.close()


async def test_strict_functions_are_called_rightly_or_not_at_all(real: Target) -> None:
    """Free to write text, a random model soon writes the mark of a call: what follows it is held."""
    client = real.engine.client()
    mark = 323  # the bias of the mark makes a call likely, and no more
    strict = offered([replace(function, is_strict=True) for function in FUNCTIONS])
    sampling = replace(SAMPLING, logit_bias=((mark, 12.0),))
    asked = [replace(calling("auto", replace(sampling, seed=seed)), tools=strict) for seed in range(4)]
    answers = await asyncio.gather(*(collect(client.generate(request)) for request in asked))
    calls = [part for events in answers for part in await parts_of(client, events) if isinstance(part, Call)]
    assert calls and all(
        jsonschema.Draft202012Validator(SCHEMAS[call.name]).is_valid(json.loads(call.arguments))
        for call in calls
    )
    await client.close()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"tool_choice": "another"}, "invalid_request"),
        ({"tools": "{"}, "invalid_request"),
        ({"sampling": Sampling(grammar=Grammar("lark", 'start: "a"'))}, "invalid_request"),
        ({"tools": offered([Function("f", parameters={"properties": {"a": {"type": "banana"}}})]), "tool_choice": "f"},
         "invalid_grammar"),
    ],
)  # fmt: skip
async def test_what_cannot_be_offered_is_refused(real: Target, fields: dict[str, object], code: str) -> None:
    client = real.engine.client()
    with pytest.raises(EngineError) as refusal:
        await client.submit(replace(calling("auto"), **fields))  # type: ignore[arg-type]
    assert refusal.value.code == code
    await client.close()


async def test_json_or_calls_is_what_an_answer_may_be_that_is_both(real: Target) -> None:
    client = real.engine.client()
    grammar = Grammar("json_schema", json.dumps(NUMBERS | {"additionalProperties": False}))
    for seed in range(3):
        events = await collect(
            client.generate(calling("auto", replace(SAMPLING, seed=seed, grammar=grammar)))
        )
        parts = await parts_of(client, events)
        assert all(
            isinstance(part, Call) or jsonschema.validate(json.loads(part), NUMBERS) is None for part in parts
        )
    await client.close()
