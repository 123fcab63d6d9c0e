"""Answers held to grammars, through the engine's door."""

from __future__ import annotations

import asyncio
import json

import jsonschema
import pytest

from inference.client import EngineClient
from inference.errors import EngineError
from inference.types import FinishReason, Grammar, Sampling
from tests.inference.contract.conftest import Target, ask
from tests.inference.contract.test_contract import collect, ending, text_of

QUESTION = "Tell me a story"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "北京"]}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["city", "n"],
    "additionalProperties": False,
}
CALL = f'start: "<call>" call "</call>"\ncall: %json {json.dumps(SCHEMA)}\n'


@pytest.fixture
def target(real: Target) -> Target:
    """The one that computes: a script may break any grammar."""
    return real


async def answer(client: EngineClient, grammar: Grammar, **sampling: object) -> tuple[str, FinishReason]:
    chosen = Sampling(**({"temperature": 1.0, "max_tokens": 200} | sampling), grammar=grammar)  # type: ignore[arg-type]
    events = await collect(client.generate(ask(QUESTION, chosen)))
    return text_of(events), ending(events).finish_reason


async def test_answers_of_all_kinds_follow_their_grammar_side_by_side(client: EngineClient) -> None:
    schema = Grammar("json_schema", json.dumps(SCHEMA))
    answers = await asyncio.gather(
        answer(client, Grammar("lark", CALL)),
        *(answer(client, schema, seed=seed) for seed in range(2)),
    )
    (call, _), *others = answers
    assert {reason for _, reason in answers} == {FinishReason.STOP}
    for text in (call.removeprefix("<call>").removesuffix("</call>"), *(text for text, _ in others)):
        jsonschema.validate(json.loads(text), SCHEMA)


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar("json_schema", '{"type": "banana"}'),
        Grammar("json_schema", "{"),
        Grammar("json_schema", '{"multipleOf": 1000003}'),
        Grammar("lark", "nonsense"),
        Grammar("regex", "a+"),
    ],
)
async def test_a_grammar_that_no_answer_can_be_held_to_is_refused(
    client: EngineClient, grammar: Grammar
) -> None:
    with pytest.raises(EngineError) as refusal:
        await collect(client.generate(ask(QUESTION, Sampling(grammar=grammar))))
    assert refusal.value.code == "invalid_grammar"
    assert (await client.info()).has_grammar
