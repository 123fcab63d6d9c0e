"""Answers are held to their grammars: row by row, in any company, and a grammar that fails, fails alone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from llguidance import LLParserLimits

from inference.core import grammar as library
from inference.core import sampler
from inference.core.grammar import Compiler, Matching
from inference.core.messages import Admit, SamplingSpec, Vocabulary
from inference.front.model_folder import read_tokenizer
from inference.models.loader import LoadedModel
from inference.types import Grammar
from tests.inference.core.driver import Driver, admit
from tests.inference.core.executors import Held as HeldBack
from tests.inference.core.schemas import random_schema

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
# Remembers which of the last 200 letters were an a: its states never end.
COSTLY = {"type": "string", "pattern": "^(.*a.{200})$"}
END, CONTROL = 2, {0, 1, 2}
Make = Callable[..., Driver]
Read = Callable[[Driver, Admit], str]


def schema(fields: dict[str, Any]) -> Grammar:
    return Grammar("json_schema", json.dumps(fields))


def lark(text: str) -> Grammar:
    return Grammar("lark", text)


def held(grammar: Grammar | None, prompt: list[int] | None = None, **fields: Any) -> Admit:
    """A request held to `grammar`, with fields of SamplingSpec and of Admit."""
    spec = {name: fields.pop(name) for name in list(fields) if name in SamplingSpec.__struct_fields__}
    fields = {"max_tokens": 600, "stop_ids": [END]} | fields
    return admit(prompt or [5, 6, 7], sampling=SamplingSpec(**spec, grammar=grammar), **fields)


@pytest.fixture(scope="module")
def vocabulary(load_tiny: Callable[[str], LoadedModel]) -> Vocabulary:
    tokenizer = read_tokenizer(load_tiny("llama").folder)
    tokens = [tokenizer.token_bytes(token) for token in range(tokenizer.num_tokens)]
    return Vocabulary(tokens, sorted(tokenizer.control_ids), [END])


@pytest.fixture
def make(make_driver: Make, vocabulary: Vocabulary) -> Make:
    """A core that knows its vocabulary."""

    def made(**fields: Any) -> Driver:
        driver = make_driver(**fields)
        driver.step(vocabulary)
        return driver

    return made


@pytest.fixture
def read(vocabulary: Vocabulary) -> Read:
    def text(driver: Driver, request: Admit) -> str:
        ids = driver.ids(request)
        return b"".join(vocabulary.tokens[token] for token in ids if token != END).decode()

    return text


def test_an_answer_follows_its_lark_grammar_and_then_ends(make: Make, read: Read) -> None:
    driver = make()
    call = f'start: "<call>" call "</call>"\ncall: %json {json.dumps(SCHEMA)}\n'
    request = held(lark(call), temperature=1.0)
    driver.run(request)
    assert (driver.end(request).error, driver.end(request).reason) == ("", "stop")
    text = read(driver, request).removeprefix("<call>").removesuffix("</call>")
    jsonschema.validate(json.loads(text), SCHEMA)


def test_answers_to_fifty_schemas_side_by_side_are_valid(
    make: Make, read: Read, vocabulary: Vocabulary
) -> None:
    """A random model writes what it must only because it is held to it. Without its blanks, which it likes too much."""
    source = random.Random(3)
    schemas = [random_schema(source) for _ in range(50)]
    blanks = [(token, -100.0) for token, text in enumerate(vocabulary.tokens) if not text.strip()]
    driver = make(max_batch=50)
    requests = [
        held(schema(one), [5, n % 300 + 3], temperature=n % 3 * 0.6, seed=n, logit_bias=blanks)
        for n, one in enumerate(schemas)
    ]
    driver.run(*requests)
    for one, request in zip(schemas, requests, strict=True):
        assert (driver.end(request).error, driver.end(request).reason) == ("", "stop"), one
        jsonschema.validate(json.loads(read(driver, request)), one)
        assert not CONTROL & set(driver.ids(request)[:-1])


def mixed() -> list[Admit]:
    """Grammars among rows without any, each with a sampling of its own."""
    free, word = None, lark("start: /[a-z ]{8,24}/")
    specs: list[tuple[Grammar | None, dict[str, Any]]] = [
        (schema(SCHEMA), {"temperature": 1.5, "seed": 7}),
        (free, {"temperature": 1.2, "seed": 9}),
        (word, {"temperature": 0.9, "top_p": 0.7, "min_p": 0.01, "seed": 9, "repetition_penalty": 1.2}),
        (
            schema(SCHEMA),
            {"temperature": 1.0, "top_k": 20, "seed": 11, "logit_bias": [(5, 3.0), (9, -100.0)]},
        ),
        (word, {"presence_penalty": 0.6, "frequency_penalty": 0.4, "logprobs": 3, "min_tokens": 4}),
        (free, {"repetition_penalty": 1.3}),
        (Grammar("json_object"), {"temperature": 1.0, "top_p": 0.9, "top_k": 600, "seed": 3}),
    ]
    return [
        held(grammar, list(range(n + 3, n + 30)), max_tokens=40, **spec)
        for n, (grammar, spec) in enumerate(specs)
    ]


def told(driver: Driver, request: Admit) -> tuple[str, list[tuple[int, list[int]]]]:
    """Why it ended, and its tokens with the ids of their alternatives."""
    made = [(out.token, [token for token, _ in out.top]) for out in driver.tokens[request.id]]
    return driver.end(request).reason, made


def company_changes_nothing(make: Make) -> None:
    alone = []
    for request in mixed():
        driver = make()
        driver.run(request)
        alone.append(told(driver, request))
    for fields in ({"step_tokens": 48}, {"num_blocks": 7}):
        driver, batch = make(**fields), mixed()
        for request in batch:  # they join a running batch
            driver.step(request)
        driver.run()
        assert driver.loop.stats().preemptions > 0 or "num_blocks" not in fields
        assert [told(driver, request) for request in batch] == alone


def test_company_and_preemption_change_no_answer(make: Make) -> None:
    company_changes_nothing(make)


def test_an_answer_that_is_cut_says_so_and_fits_as_far_as_it_goes(make: Make, read: Read) -> None:
    driver = make()
    cut = held(schema(SCHEMA), max_tokens=4)
    driver.run(cut)
    assert driver.end(cut).reason == "length" and read(driver, cut).startswith("{")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_least_tokens_hold_back_an_end_that_may_wait_but_never_a_complete_answer(
    make: Make, read: Read, temperature: float
) -> None:
    driver = make()
    may_go_on = held(lark("start: /a*/"), temperature=temperature, min_tokens=5, logit_bias=[(END, 100.0)])
    complete = held(lark('start: "ab"'), temperature=temperature, min_tokens=20)
    driver.run(may_go_on, complete)
    assert read(driver, may_go_on) == "aaaaa"
    assert (read(driver, complete), driver.end(complete).reason) == ("ab", "stop")


def test_an_end_of_the_request_ends_it_in_the_middle(make: Make, vocabulary: Vocabulary) -> None:
    comma = vocabulary.tokens.index(b",")
    driver = make()
    request = held(lark('start: "a,b"'), stop_ids=[END, comma])
    driver.run(request)
    assert (driver.ids(request)[-1], driver.end(request).reason) == (comma, "stop")


def a_costly_grammar_fails_alone(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "LIMITS", LLParserLimits(max_lexer_states=900, verbose_errors=False))
    alone = make()
    neighbour = held(schema(SCHEMA), temperature=1.0, seed=4)
    alone.run(neighbour)
    driver = make()
    costly, beside = (
        held(schema(COSTLY), temperature=1.5, seed=1),
        held(schema(SCHEMA), temperature=1.0, seed=4),
    )
    free = held(None, max_tokens=6)
    driver.run(costly, beside, free)
    assert driver.end(costly).reason == "failed" and "grammar" in driver.end(costly).error
    assert driver.ids(beside) == alone.ids(neighbour) and driver.end(beside).reason == "stop"
    assert driver.end(free).error == "" and driver.loop.stats().blocks_used == 0
    again = held(schema(SCHEMA), temperature=1.0, seed=4)
    driver.run(again)
    assert driver.ids(again) == alone.ids(neighbour)


def test_a_grammar_that_fails_in_mid_answer_fails_alone(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere such an error ended the engine for all (CVE-2026-105757)."""
    a_costly_grammar_fails_alone(make, monkeypatch)


class Panic(BaseException):
    """As the library's panics are, no Exception."""


@pytest.mark.parametrize("error", [ValueError, Panic])
def test_a_library_that_breaks_fails_its_own_sequences_only(make: Make, error: type[BaseException]) -> None:
    class Broken:
        def unsafe_compute_mask_ptr(self, rows: list[Any], *place: int) -> None:
            if any(not matcher.is_accepting() for matcher, _ in rows):
                raise error("broken")
            LIBRARY.unsafe_compute_mask_ptr(rows, *place)

    driver = make()
    LIBRARY = driver.loop._grammars._fill_on
    driver.loop._grammars._fill_on = Broken()  # type: ignore[assignment]
    bad, good, free = held(lark('start: "ab"')), held(lark("start: /a{0,3}/")), held(None, max_tokens=5)
    driver.run(bad, good, free)
    assert "broken" in driver.end(bad).error and driver.end(bad).reason == "failed"
    assert driver.end(good).error == "" and len(driver.ids(free)) == 5


def test_a_grammar_that_panics_while_it_is_compiled_fails_alone(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(self: Compiler, grammar: Grammar) -> Matching:
        if "panic" in grammar.text:
            raise Panic("broken")
        return compiler(self, grammar)

    compiler = Compiler.compile
    monkeypatch.setattr(Compiler, "compile", compiled)
    driver, bad, good = make(), held(lark('start: "panic"')), held(lark("start: /a{0,3}/"))
    driver.run(bad, good)
    assert "broken" in driver.end(bad).error and driver.end(good).error == ""


@pytest.mark.parametrize("vocabulary", [None, Vocabulary([b"a", b"b"], [9], [10**9])])
def test_without_a_vocabulary_an_answer_that_needs_one_fails_alone(
    make_driver: Make, vocabulary: Vocabulary | None
) -> None:
    """None was told, or one that the library cannot read."""
    driver = make_driver()
    driver.step(*([vocabulary] if vocabulary else []))
    bad, good = held(schema(SCHEMA)), held(None, max_tokens=5)
    driver.run(bad, good)
    assert "not known" in driver.end(bad).error and len(driver.ids(good)) == 5


def test_ids_beyond_the_vocabulary_are_never_made(make_driver: Make, vocabulary: Vocabulary) -> None:
    """Models are padded; and a vocabulary may lack ids in its middle."""
    known = 280
    holes = [b"" if token == 70 else text for token, text in enumerate(vocabulary.tokens[:known])]
    driver = make_driver()
    driver.step(Vocabulary(holes, sorted(CONTROL), [END]))
    request = held(lark(r"start: /(.|\n){60}/"), temperature=5.0, seed=2)
    driver.run(request)
    assert driver.end(request).error == "" and len(driver.ids(request)) > 10
    assert max(driver.ids(request)) < known and 70 not in driver.ids(request)


def test_grammars_that_are_compiled_hold_nobody_up(make: Make) -> None:
    """The loop goes on while a thread compiles; who waits for it is passed by others and may be given up."""
    driver, thread = make(), HeldBack()
    driver.loop._grammars._compile_on = thread  # type: ignore[assignment]
    slow, given_up, free = held(schema(SCHEMA)), held(schema(SCHEMA)), held(None, max_tokens=5)
    driver.step(slow, given_up, free)
    while free.id not in driver.finished:
        driver.step()
    assert not driver.ids(slow) and driver.loop.rest_s() == pytest.approx(0.001)
    driver.cancel(given_up)
    thread.run_all()
    driver.run()
    assert driver.end(slow).reason == "stop" and driver.end(given_up).reason == "cancelled"
    assert not driver.loop._grammars._of


# --- the mistakes that these tests are there for


def broken() -> Any:
    return pytest.raises((AssertionError, ValueError, pytest.fail.Exception))


def test_a_mask_that_is_left_out_is_noticed(make: Make, read: Read, monkeypatch) -> None:
    monkeypatch.setattr(sampler, "_forbid", lambda scores, allowed: None)
    with broken():
        test_an_answer_follows_its_lark_grammar_and_then_ends(make, read)


def test_one_state_for_equal_grammars_is_noticed(make: Make, monkeypatch) -> None:
    """Two answers advance the same state: a cache of compiled grammars that forgets to copy."""
    compile_anew, made = Compiler.compile, {}

    def compile_once(self: Compiler, grammar: Grammar) -> Matching:
        return made.setdefault(grammar, compile_anew(self, grammar))

    monkeypatch.setattr(Compiler, "compile", compile_once)
    with broken():
        company_changes_nothing(make)


def test_a_failure_that_is_taken_for_an_end_is_noticed(make: Make, monkeypatch) -> None:
    """After an error the library allows nothing but ends: half a JSON, and `stop`."""
    monkeypatch.setattr(Matching, "check", lambda self: None)
    with broken():
        a_costly_grammar_fails_alone(make, monkeypatch)
