"""Grammars of calls: they let through what the formats' readers read, and no other function or argument."""

from __future__ import annotations

import json

import pytest

from inference.core.grammar import Compiler
from inference.core.grammar_text import GrammarNotUsable
from inference.front.grammars import vocabulary_of
from inference.front.model import ServedModel
from inference.front.prompts import PromptBuilder
from inference.front.templates import CHATML, ChatTemplate
from inference.testing.tokenizer import END_OF_TURN, ByteTokenizer
from inference.tools.formats import FORMATS, HERMES, LLAMA_JSON, CallFormat
from inference.tools.functions import Function
from inference.tools.grammar import grammar_of_calls, grammar_with_json, grammar_with_text
from inference.types import Grammar

CITY = {"type": "object", "properties": {"city": {"enum": ["Oslo", "北京"]}}, "required": ["city"]}
FUNCTIONS = [
    Function("weather", parameters=CITY),
    Function("ping"),
    Function("any", parameters={"type": "object"}),
]
RIGHT = (
    ('"weather"', '{"city": "Oslo"}'),
    ('"weather"', '{"city":"北京"}'),
    ('"ping"', "{}"),
    ('"any"', '{"x":1}'),
)
WRONG = (
    ('"weather"', "{}"),
    ('"weather"', '{"city": "Rome"}'),
    ('"ping"', '{"a":1}'),
    ('"pay"', "{}"),
    ('"any"', "[]"),
)


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    tokenizer = ByteTokenizer()
    prompts = PromptBuilder(tokenizer, ChatTemplate(CHATML))
    return Compiler(vocabulary_of(ServedModel("m", tokenizer, prompts, frozenset({END_OF_TURN}))))


def fits(compiler: Compiler, grammar: str, text: str) -> bool:
    matcher = compiler.compile(Grammar("lark", grammar)).matcher
    raw = list(text.encode())
    return matcher.try_consume_tokens(raw) == len(raw) and matcher.is_accepting()


def written(form: CallFormat, name: str, arguments: str) -> str:
    body = f'{{"name": {name}, "{form.arguments_key}": {arguments}}}'
    return f"{form.opening}{form.blank}{body}{form.blank}{form.closing}"


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_right_calls_fit_and_wrong_ones_do_not(compiler: Compiler, form: CallFormat) -> None:
    for is_one in (True, False):
        grammar = grammar_of_calls(form, FUNCTIONS, {}, is_one=is_one)
        assert all(fits(compiler, grammar, written(form, *call)) for call in RIGHT)
        assert not any(fits(compiler, grammar, written(form, *call)) for call in WRONG)
        assert not fits(compiler, grammar, "") and not fits(compiler, grammar, "Let me see.")
        two = form.between.join(written(form, *call) for call in RIGHT[:2])
        assert fits(compiler, grammar, two) == (form.repeats and not is_one)


def test_json_or_calls_is_told_by_the_mark(compiler: Compiler) -> None:
    schema = json.dumps({"type": "object", "required": ["z"]})
    both = grammar_with_json(HERMES, FUNCTIONS, {}, schema)
    assert both is not None and grammar_with_json(LLAMA_JSON, FUNCTIONS, {}, schema) is None
    assert fits(compiler, both, '{"z": 1}') and fits(compiler, both, written(HERMES, *RIGHT[0]))
    assert not fits(compiler, both, "text") and not fits(compiler, both, '{"a": 1}')


def test_marks_that_are_tokens_stand_as_tokens(compiler: Compiler) -> None:
    """Spelled in letters they would be no marks to the model."""
    marks = {HERMES.opening: 256, HERMES.closing: 257}
    text = grammar_with_text(HERMES, FUNCTIONS, marks)
    assert text is not None
    body = list(b'\n{"name": "ping", "arguments": {}}\n')
    for grammar, before in (
        (grammar_of_calls(HERMES, FUNCTIONS, marks, is_one=True), []),
        (text, list(b"So:\n")),
    ):
        matcher = compiler.compile(Grammar("lark", grammar)).matcher
        ids = [*before, 256, *body, 257]
        assert matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting()
        wrong = compiler.compile(Grammar("lark", grammar)).matcher
        assert wrong.try_consume_tokens([256, *b'\n{"name": "pay']) < 15
    assert fits(compiler, text, "Only text, of <any> kind.\n")


def test_where_only_letters_tell_a_call_free_text_is_not_held() -> None:
    assert grammar_with_text(HERMES, FUNCTIONS, {}) is None
    assert grammar_with_text(LLAMA_JSON, FUNCTIONS, {}) is None


def test_a_schema_that_composes_is_left_as_it_is(compiler: Compiler) -> None:
    parts = {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}]}
    grammar = grammar_of_calls(
        HERMES, [Function("f", parameters={"properties": {}} | parts)], {}, is_one=True
    )
    assert fits(compiler, grammar, written(HERMES, '"f"', '{"a": 1}'))
    with pytest.raises(GrammarNotUsable):
        banana = Function("f", parameters={"properties": {"a": {"type": "banana"}}})
        compiler.compile(Grammar("lark", grammar_of_calls(HERMES, [banana], {}, is_one=True)))
