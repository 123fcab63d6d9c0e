"""Answers are held to their grammars: row by row, in any company, and a grammar that fails, fails alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from inference.core.messages import Admit, SamplingSpec, Vocabulary
from inference.front.model_folder import read_tokenizer
from inference.models.loader import LoadedModel
from inference.types import Grammar
from tests.inference.core.driver import Driver, admit

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "bc"]}, "maxItems": 2},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
END, CONTROL = 2, [0, 1, 2]
Make = Callable[..., Driver]


def schema(fields: dict[str, Any]) -> Grammar:
    return Grammar("json_schema", json.dumps(fields))


def held(grammar: Grammar, prompt: list[int] | None = None, **fields: Any) -> Admit:
    """A request held to `grammar`; fields of SamplingSpec and of Admit."""
    spec = {name: fields.pop(name) for name in list(fields) if name in SamplingSpec.__struct_fields__}
    fields = {"max_tokens": 400, "stop_ids": [END]} | fields
    return admit(prompt or [5, 6, 7], sampling=SamplingSpec(**spec, grammar=grammar), **fields)


@pytest.fixture(scope="module")
def vocabulary(load_tiny: Callable[[str], LoadedModel]) -> Vocabulary:
    tokenizer = read_tokenizer(load_tiny("llama").folder)
    tokens = [tokenizer.token_bytes(token) for token in range(load_tiny("llama").vocab_size)]
    return Vocabulary(tokens, CONTROL, [END])


@pytest.fixture
def make(make_driver: Make, vocabulary: Vocabulary) -> Make:
    """A core that knows its vocabulary."""

    def made(**fields: Any) -> Driver:
        driver = make_driver(**fields)
        driver.step(vocabulary)
        return driver

    return made


@pytest.fixture
def text_of(vocabulary: Vocabulary) -> Callable[[Driver, Admit], str]:
    def text(driver: Driver, request: Admit) -> str:
        ids = driver.ids(request)
        return b"".join(vocabulary.tokens[token] for token in ids if token != END).decode()

    return text


def test_an_answer_follows_its_lark_grammar_and_then_ends(make: Make, text_of) -> None:
    driver = make()
    embedded = json.dumps(SCHEMA)
    request = held(
        Grammar("lark", f'start: "<call>" call "</call>"\ncall: %json {embedded}\n'), temperature=1.0
    )
    driver.run(request)
    text = text_of(driver, request)
    assert (driver.end(request).error, driver.end(request).reason) == ("", "stop")
    jsonschema.validate(json.loads(text.removeprefix("<call>").removesuffix("</call>")), SCHEMA)
