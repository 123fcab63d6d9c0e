"""The gateway's parts one by one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher

from inference.config import EngineConfig
from inference.core.grammar import Compiler
from inference.core.messages import SamplingSpec, TokenOut, Vocabulary
from inference.front.tokenizer import Tokenizer
from inference.gateway.address import check_upstream, parse_address
from inference.gateway.completion import MAX_CONNECTS, MIN_WAIT_S, Completions
from inference.gateway.core import read_max_context
from inference.gateway.dialect import Dialect, describe
from inference.gateway.errors import Broken, Busy, Refused, Unreachable, UpstreamError
from inference.gateway.events import MAX_LINE_BYTES, read_events
from inference.gateway.request import BACKGROUND_PRIORITY, OFFLINE_PRIORITY, body_of
from inference.gateway.spelling import Speller
from inference.gateway.upstream import Upstream
from inference.gateway.wire import Chunk, error_text, read_chunk, read_models
from inference.settings import SettingError
from inference.testing.tokenizer import ByteTokenizer
from inference.types import Grammar
from tests.inference.gateway.driver import admit_of

EVERYTHING = Dialect("m")
SAMPLING = SamplingSpec(
    temperature=0.5,
    top_p=0.9,
    top_k=40,
    min_p=0.1,
    repetition_penalty=1.2,
    presence_penalty=0.3,
    frequency_penalty=0.4,
    seed=7,
    logprobs=2,
    min_tokens=3,
    logit_bias=[(5, -100.0), (6, 1.5)],
)


def test_every_sampling_field_is_passed_on() -> None:
    body = body_of(admit_of("a", sampling=SAMPLING, stop_ids=[2, 9]), EVERYTHING, ByteTokenizer)
    expected = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.1,
        "repetition_penalty": 1.2,
        "presence_penalty": 0.3,
        "frequency_penalty": 0.4,
        "seed": 7,
        "logprobs": 2,
        "return_tokens_as_token_ids": True,
        "min_tokens": 3,
        "logit_bias": {"5": -100.0, "6": 1.5},
        "stop_token_ids": [2, 9],
        "max_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        "model": "m",
    }
    assert {name: body[name] for name in expected} == expected
    assert set(body) - set(expected) == {"prompt", "cache_salt", "add_special_tokens"}


def test_every_field_of_the_core_s_sampling_has_a_place_in_the_request() -> None:
    """A field that is new in the core must not be lost here without a word."""
    assert set(SamplingSpec.__struct_fields__) == {
        "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
        "seed", "logprobs", "min_tokens", "logit_bias", "grammar",
        "speculate",
    }  # fmt: skip


def told(grammar: Grammar, dialect: Dialect) -> dict[str, Any]:
    body = body_of(admit_of("a", sampling=SamplingSpec(grammar=grammar)), dialect, ByteTokenizer)
    return {name: body[name] for name in ("response_format", "structured_outputs") if name in body}


LARK_TEXT = Grammar("lark", "start: /a+/")


def test_an_upstream_that_reads_grammars_gets_rules_without_what_only_our_library_understands() -> None:
    """xgrammar, which vLLM takes by default, answers `%llguidance` with an error."""
    schema = '{"type": "object", "properties": {"z": {}, "a": {}}}'
    call = Grammar("lark", f'start: "<call>" %json {schema} "</call>"')
    for grammar in (Grammar("json_object"), Grammar("json_schema", schema), call, LARK_TEXT):
        rules = told(grammar, EVERYTHING)["structured_outputs"]["grammar"]
        assert rules.startswith("start: ") and "%llguidance" not in rules
        assert ("%json" in rules) == ('"item_separator"' in rules)
    with pytest.raises(Refused):
        told(Grammar("json_schema", "{"), EVERYTHING)


@pytest.mark.parametrize("blanks", [0, 1, 32, 33])
def test_blanks_between_the_parts_of_json_have_an_end(blanks: int) -> None:
    """In the library as we have it; the older one in vLLM is asked in `make gateway-vllm`."""
    end = 256
    compiler = Compiler(Vocabulary([*(bytes([byte]) for byte in range(end)), b"<end>"], [end], [end]))
    rules = told(Grammar("json_object"), EVERYTHING)["structured_outputs"]["grammar"]
    matcher = LLMatcher(compiler._tokenizer, f'%llguidance {{"no_forcing": true}}\n{rules}')
    space = " " * blanks
    answer = f'{{"a"{space}:{space}1{space},{space}"b":2}}'.encode()
    assert (matcher.validate_tokens(list(answer)) == len(answer)) is (blanks <= 32)


def test_elsewhere_json_is_asked_for_in_openais_words_and_nothing_else_is() -> None:
    dialect = replace(EVERYTHING, reads_grammars=False)
    schema = {"type": "object", "properties": {"z": {}, "a": {}}}
    assert told(Grammar("json_object"), dialect) == {"response_format": {"type": "json_object"}}
    given = told(Grammar("json_schema", json.dumps(schema)), dialect)["response_format"]["json_schema"]
    assert given["schema"] == schema and list(given["schema"]["properties"]) == ["z", "a"] and given["strict"]
    unable = replace(EVERYTHING, holds_grammars=False)
    for grammar, less in ((LARK_TEXT, dialect), (Grammar("json_object"), unable)):
        with pytest.raises(Refused):
            told(grammar, less)


def test_no_top_k_is_said_as_every_version_understands_it() -> None:
    assert body_of(admit_of("a"), EVERYTHING, ByteTokenizer)["top_k"] == -1


def test_greedy_answers_carry_no_seed() -> None:
    """vLLM samples seeded requests apart from the others, and a greedy one draws nothing."""
    assert "seed" not in body_of(admit_of("a"), EVERYTHING, ByteTokenizer)


def test_classes_keep_their_order_whatever_the_priority() -> None:
    def priority(**fields: Any) -> int:
        body = body_of(admit_of("a", **fields), EVERYTHING, ByteTokenizer)
        return int(body.get("priority", 0))

    assert priority() == 0
    assert priority(priority=-5) == -5
    assert priority(priority=2, is_offline=True) == OFFLINE_PRIORITY + 2
    assert priority(priority=-5, is_background=True) == BACKGROUND_PRIORITY


@given(st.lists(st.text(min_size=1), max_size=6))
def test_ids_of_text_parts_spell_the_whole_text(parts: list[str]) -> None:
    tokenizer = ByteTokenizer()
    speller = Speller(tokenizer)
    ids = [token for part in parts for token in speller.ids_of(part)]
    assert tokenizer.decode(ids) == "".join(parts)


class BlankStripper(ByteTokenizer):
    """Like SentencePiece: a blank at the start of what is decoded is not shown."""

    def decode(self, ids: Any) -> str:
        return super().decode(ids).removeprefix(" ")


def test_parts_that_begin_with_a_blank_keep_it() -> None:
    speller = Speller(BlankStripper())
    ids = [token for part in ("Hello", " world", " ", "x") for token in speller.ids_of(part)]
    assert BlankStripper().decode(ids) == "Hello world x"


def test_a_tokenizer_that_cannot_spell_a_text_says_so() -> None:
    class Deaf(ByteTokenizer):
        def encode_plain(self, text: str, *, is_start: bool = False) -> list[int]:
            return [ord("?")] * len(text)

    with pytest.raises(Broken, match="same model"):
        Speller(Deaf()).ids_of("abc")


def test_the_start_line_says_what_is_lost() -> None:
    assert describe(EVERYTHING) == "m: token ids both ways, salts and priorities are taken"
    poor = describe(
        Dialect("m", takes_ids=False, gives_ids=False, takes_extensions=False, takes_priority=False)
    )
    for what in ("as text", "reuse of generated tokens", "no salt", "no priorities"):
        assert what in poor


@pytest.mark.parametrize(
    ("url", "root", "shown"),
    [
        ("http://host:8000", "http://host:8000", "http://host:8000"),
        ("http://host:8000/v1/", "http://host:8000", "http://host:8000"),
        ("https://user:pass@host/llm/v1", "https://user:pass@host/llm", "https://host/llm"),
        ("http://[::1]:8000", "http://[::1]:8000", "http://[::1]:8000"),
        (" http://host:8000/\n", "http://host:8000", "http://host:8000"),
    ],
)
def test_addresses_are_called_whole_and_shown_without_credentials(url: str, root: str, shown: str) -> None:
    address = parse_address(url)
    assert (address.root, address.shown) == (root, shown)
    assert "pass" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "host:8000", "ftp://host", "http://", "http://host?x=1", "http://host:port", "http://ho st", "http://host/\0",
        "http://[::1", "http://::1:8000",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_at_start(url: str) -> None:
    with pytest.raises(SettingError, match="ENGINE_UPSTREAM"):
        parse_address(url)


@pytest.mark.parametrize(
    "url", ["http://me:secret", "http://me:secret#word@host", "http://me:secret/word@host"]
)
def test_a_password_that_breaks_the_url_is_not_shown(url: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_address(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"upstream_key": "secret\n"}, "ENGINE_UPSTREAM_KEY"),
        ({"upstream_key": "schlüssel"}, "ENGINE_UPSTREAM_KEY"),
        ({"upstream_session_header": "X Session"}, "ENGINE_UPSTREAM_SESSION_HEADER='X Session'"),
        ({"upstream_session_header": "X:"}, "ENGINE_UPSTREAM_SESSION_HEADER"),
        ({"upstream": "host"}, "ENGINE_UPSTREAM is"),
    ],
)
def test_what_no_header_can_hold_is_refused_at_start(fields: dict[str, str], named: str) -> None:
    """Else every request fails, and the HTTP library quotes the key in its complaint."""
    with pytest.raises(SettingError, match=named) as caught:
        check_upstream(EngineConfig(**({"upstream": "http://host"} | fields)))  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)
    check_upstream(EngineConfig(upstream="http://host", upstream_key="a-1", upstream_session_header=""))


@pytest.mark.parametrize("proxy", ["socks5://me:secret@host", "ftp://me:secret@host"])
def test_a_proxy_of_the_environment_that_cannot_be_used_is_a_wrong_setting(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(SettingError, match="ALL_PROXY") as caught:
        Upstream(parse_address("http://host"), "", 1)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"message": "too long", "type": "BadRequestError", "code": 400}}',
        b'{"object": "error", "message": "too long", "code": 400}',
        b'{"error": "too long", "error_type": "validation"}',
        b'{"detail": "too long"}',
        b"too   long\n",
    ],
)
def test_errors_are_read_in_all_their_forms(body: bytes) -> None:
    assert error_text(body) == "too long"


class ScriptedCalls:
    """Each call of `complete` gives or raises the next outcome."""

    def __init__(self, *outcomes: list[Chunk] | UpstreamError) -> None:
        self.outcomes = list(outcomes)
        self.slept: list[float] = []

    async def complete(self, body: Any, headers: Any) -> AsyncIterator[Chunk]:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, UpstreamError):
            raise outcome
        for chunk in outcome:
            yield chunk

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def completions(self, load_tokenizer: type[Tokenizer] | Any = ByteTokenizer) -> Completions:
        return Completions(self, EVERYTHING, load_tokenizer, "X-Session-ID", self.sleep)  # type: ignore[arg-type]


GOOD = [read_chunk('{"choices": [{"text": "a", "token_ids": [97], "finish_reason": "stop"}]}')]


async def run(calls: ScriptedCalls) -> list[int]:
    outs: list[TokenOut] = []
    await calls.completions().run(admit_of("a"), outs.extend)
    return [out.token for out in outs]


async def test_retries_wait_as_long_as_was_asked_else_longer_each_time() -> None:
    calls = ScriptedCalls(Busy("full", 3.0), Busy("full", 600.0), Busy("full"), Unreachable("away"), GOOD)
    assert await run(calls) == [97]
    assert calls.slept == [3.0, 30.0, 2.0, 4.0]


async def test_a_full_upstream_that_says_at_once_is_not_asked_without_a_pause() -> None:
    calls = ScriptedCalls(Busy("full", 0.0), GOOD)
    assert await run(calls) == [97]
    assert calls.slept == [MIN_WAIT_S]


@pytest.mark.parametrize(
    ("num_asked", "expected"), [(3, [97, 98, 99]), (4, [97, 98, 99, 100]), (9, [97, 98, 99, 100])]
)
async def test_no_more_tokens_are_taken_than_were_asked_for(num_asked: int, expected: list[int]) -> None:
    """Whatever the upstream makes of max_tokens: nobody else bounds an answer."""
    calls = ScriptedCalls(
        [read_chunk(f'{{"choices": [{{"token_ids": [{token}, {token + 1}]}}]}}') for token in (97, 99)]
    )
    calls.outcomes[0].append(read_chunk('{"choices": [{"finish_reason": "stop"}]}'))  # type: ignore[union-attr]
    outs: list[TokenOut] = []
    ending = await calls.completions().run(admit_of("a", max_tokens=num_asked), outs.extend)
    assert [out.token for out in outs] == expected
    assert ending.reason == ("length" if num_asked == 3 else "stop")


async def test_an_upstream_that_stays_away_is_told_after_a_few_tries() -> None:
    calls = ScriptedCalls(*[Unreachable("away")] * MAX_CONNECTS)
    with pytest.raises(Unreachable):
        await run(calls)
    assert len(calls.slept) == MAX_CONNECTS - 1


async def test_a_refusal_is_tried_once_without_neutral_fields_and_not_again() -> None:
    calls = ScriptedCalls(Refused("no"), Refused("no"), GOOD)
    with pytest.raises(Refused):
        await run(calls)
    assert calls.slept == []


CHUNK = '{"text": "你好\u2028\x85\x0b\x1c 😉"}'.encode()
STREAM = b"\xef\xbb\xbfdata: " + CHUNK + b"\r\n\r\n: ping\n\nevent: x\ndata:{}\n\ndata: \n\ndata: [DONE]"


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_read_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    """Also inside a character; and only a line feed ends a line, whatever else looks like one to Unicode."""
    places = [0, *sorted(cuts), len(STREAM)]
    parts = [STREAM[start:end] for start, end in pairwise(places)]
    events = asyncio.run(collected(read_events(arriving(parts))))
    assert events == [CHUNK, b"{}", b"[DONE]"]


async def test_a_line_without_end_is_given_up() -> None:
    with pytest.raises(Broken, match="a line of more than"):
        await collected(read_events(arriving([b"x" * (MAX_LINE_BYTES // 2)] * 3)))


async def arriving(parts: list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def collected(events: AsyncIterator[bytes]) -> list[bytes]:
    return [event async for event in events]


@pytest.mark.parametrize(
    "chunk",
    [
        '{"usage": {"prompt_tokens_details": {"cached_tokens": -1}}}',
        '{"usage": {"prompt_tokens_details": {"cached_tokens": 1e30}}}',
        '{"choices": [{"token_ids": [-1]}]}',
    ],
)
def test_numbers_that_would_harm_us_make_a_chunk_unreadable(chunk: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_chunk(chunk)


@pytest.mark.parametrize("longest", ["-1", "1e30", "99999999999999999999999"])
def test_an_impossible_context_makes_the_list_of_models_unreadable(longest: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_models(f'{{"data": [{{"id": "m", "max_model_len": {longest}}}]}}'.encode())


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"max_position_embeddings": 2048}', 2048),
        ('{"max_position_embeddings": 1, "text_config": {"max_position_embeddings": 4096}}', 4096),
        ('{"max_position_embeddings": 2048, "text_config": null}', 2048),
        ('{"max_position_embeddings": "many"}', None),
        ("[]", None),
    ],
)
def test_the_longest_context_is_that_of_the_text_model(
    tmp_path: Path, config: str, expected: int | None
) -> None:
    (tmp_path / "config.json").write_text(config)
    assert read_max_context(tmp_path) == expected


def test_the_front_starts_without_the_gateway_s_libraries() -> None:
    """The address is all that the front needs of this package."""
    import subprocess
    import sys

    code = "import sys, inference.front.engine; sys.exit(any(name in sys.modules for name in ('httpx2', 'torch')))"
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
