"""What no answer can be held to is refused in bounded time and memory, and costs nobody else anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from inference.config import EngineConfig
from inference.core.messages import Admit, Command, Vocabulary
from inference.errors import InvalidGrammar, NotSupported
from inference.front import grammar_process
from inference.front.grammar_process import TOO_COSTLY, GrammarProcess
from inference.front.grammars import Grammars, vocabulary_of
from inference.testing.front import scripted_model
from inference.types import GenerateRequest, Grammar, Owner, Sampling, Segment
from tests.inference.front.idle_core import READY, IdleCore, engine_over

MODEL = scripted_model(EngineConfig())
VOCABULARY = vocabulary_of(MODEL)
GOOD = Grammar("json_schema", '{"type": "object"}')


def schema(fields: Any) -> Grammar:
    return Grammar("json_schema", json.dumps(fields))


def deep(levels: int) -> str:
    return '{"items":' * levels + "{}" + "}" * levels


# What is wrong: (grammar, a word of the sentence that says so)
REFUSED: dict[str, tuple[Grammar, str]] = {
    "no JSON": (Grammar("json_schema", "{"), "no JSON"),
    "no number": (Grammar("json_schema", '{"const": NaN}'), "NaN"),
    "half a character": (Grammar("json_schema", r'{"const": "\ud800"}'), "hex escape"),
    "no object": (schema(True), "no JSON object"),
    "an unknown type": (schema({"type": "banana"}), "banana"),
    "a keyword that is not known in full": (schema({"not": {"type": "string"}}), "not"),
    "a pattern that is none": (schema({"type": "string", "pattern": "("}), "unclosed"),
    "branches that may both hold": (schema({"oneOf": [{"type": "string"}, {"maxLength": 3}]}), "oneOf"),
    "nothing fits": (schema({"type": "integer", "minimum": 5, "maximum": 4}), "minimum"),
    "nothing but itself": (schema({"$ref": "#"}), "no text"),
    "a file": (schema({"$ref": "file:///etc/passwd"}), "etc/passwd"),
    "another host": (schema({"$ref": "http://127.0.0.1:9/"}), "retriev"),
    "nested 200 deep": (Grammar("json_schema", deep(200)), "recursion"),
    "nested 5,000 deep": (Grammar("json_schema", deep(5000)), "deep"),
    "long": (schema({"const": "x" * 70_000}), "65536"),
    "a long text": (schema({"const": "x" * 9000}), "8192"),
    "many properties": (schema({"properties": {f"{n}": {} for n in range(1001)}}), "1000"),
    "products of choices": (
        schema(
            {
                "allOf": [
                    {"anyOf": [{"properties": {f"{n}": {"const": m}}} for m in "abcd"]} for n in range(12)
                ]
            }
        ),
        "large",
    ),
    "an unknown kind": (Grammar("regex", "a+"), "regex"),
    "a Lark text that is none": (Grammar("lark", "nonsense"), "Expected"),
    "no schema in a Lark text": (Grammar("lark", "start: %json {"), "JSON"),
    "an unknown token": (Grammar("lark", "start: <|nobody|>"), "nobody"),
}
# A second of the processor, or the memory that may grow, and no limit of the library stops them.
COSTLY = {
    "patterns at once": schema(
        {"type": "string", "allOf": [{"pattern": f"a.{{{n}}}b"} for n in range(1, 200)]}
    ),
    "remainders, in a Lark text": Grammar("lark", 'start: %json {"type": "integer", "multipleOf": 1000003}'),
}


def is_probe(command: Command) -> bool:
    return isinstance(command, Admit) and command.is_background


@pytest.fixture
async def process() -> AsyncIterator[GrammarProcess]:
    running = GrammarProcess()
    yield running
    await running.stop()


async def test_what_is_wrong_is_said_in_one_short_line(process: GrammarProcess) -> None:
    for what, (grammar, word) in REFUSED.items():
        verdict = await process.verdict(grammar, VOCABULARY)
        assert word in verdict and "\n" not in verdict and len(verdict) < 400, (what, verdict)
    for good in (GOOD, Grammar("json_object"), Grammar("lark", 'start: <|im_end|> "x"')):
        assert await process.verdict(good, VOCABULARY) == ""


async def test_costly_ones_end_their_process_and_hold_nobody_up(
    process: GrammarProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the limits of the process itself: the front's patience is for a machine that is busy."""
    monkeypatch.setattr(grammar_process, "PATIENCE_S", 100)
    for what, grammar in COSTLY.items():
        asking = asyncio.create_task(process.verdict(grammar, VOCABULARY))
        turns = 0
        while not asking.done():
            await asyncio.sleep(0.001)
            turns += 1
            assert turns < 80_000, "it is given up by patience only"
        assert await asking == TOO_COSTLY and turns > 50, what
    assert await process.verdict(GOOD, VOCABULARY) == ""


async def test_who_gives_up_leaves_no_answer_for_the_next(process: GrammarProcess) -> None:
    await process.verdict(GOOD, VOCABULARY)
    given_up = asyncio.create_task(process.verdict(schema({"type": "banana"}), VOCABULARY))
    await asyncio.sleep(0)
    given_up.cancel()
    assert await process.verdict(GOOD, VOCABULARY) == ""
    with pytest.raises(asyncio.CancelledError):
        await given_up


async def test_one_that_stands_still_is_given_up(process: GrammarProcess, monkeypatch: Any) -> None:
    monkeypatch.setattr(grammar_process, "PATIENCE_S", 0.05)
    monkeypatch.setattr(grammar_process, "ARGV", ("sleep", "60"))
    assert await process.verdict(GOOD, VOCABULARY) == TOO_COSTLY


async def test_a_core_is_told_its_vocabulary_once_and_before_the_answer_that_needs_it() -> None:
    engine = engine_over()
    asked = GenerateRequest("a", (Segment("user", "hi"),), Owner("t", "u"), Sampling(grammar=GOOD))
    await engine.submit(asked)
    await engine.submit(GenerateRequest("b", asked.segments, asked.owner, asked.sampling))
    assert isinstance(engine.core, IdleCore)
    kinds = [type(command) for command in engine.core.commands if not is_probe(command)]
    assert kinds == [Vocabulary, Admit, Admit]
    bad = GenerateRequest("c", asked.segments, asked.owner, Sampling(grammar=Grammar("lark", "nonsense")))
    with pytest.raises(InvalidGrammar, match="Expected"):
        await engine.submit(bad)
    with pytest.raises(InvalidGrammar):
        await engine.check(bad)
    assert len(engine.archive) == 2 and engine.counters.refused == 1
    engine.on_ready(READY)
    assert sum(isinstance(command, Vocabulary) for command in engine.core.commands) == 2
    await engine._grammars.stop()


async def test_an_engine_without_grammars_says_so() -> None:
    sent: list[Vocabulary] = []
    grammars = Grammars(MODEL, sent.append)
    unable = msgspec.structs.replace(READY, has_grammar=False)
    with pytest.raises(NotSupported):
        await grammars.check(GOOD, unable)
    assert not sent
