"""The right tokens are allowed whatever the way in which a vocabulary writes bytes, blanks and control tokens."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from inference.config import EngineConfig
from inference.core.grammar import Compiler
from inference.core.messages import SamplingSpec, Vocabulary
from inference.core.startup import assemble
from inference.front.grammars import vocabulary_of
from inference.front.model_folder import read_model_folder
from inference.front.model_tokenizer import ModelTokenizer
from inference.models.loader import load_served
from inference.models.tiny import byte_level_tokenizer
from inference.types import Grammar, Segment
from tests.inference.core.driver import Driver, admit

TEXT = json.dumps({"naïve": "你好 🌤️ a\tb", "n": [1, -2.5, None]}, ensure_ascii=False, indent=2)
CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "country": {"type": "string", "maxLength": 20},
        "capital": {"type": "boolean"},
        "rivers": {
            "type": "array",
            "items": {"type": "string", "maxLength": 12},
            "minItems": 1,
            "maxItems": 2,
        },
    },
    "required": ["city", "country", "capital", "rivers"],
    "additionalProperties": False,
}


def byte_level(folder: Path) -> ModelTokenizer:
    return saved(byte_level_tokenizer(), folder)


def sentencepiece(folder: Path) -> ModelTokenizer:
    """Blanks as a mark, letters by themselves, all else byte by byte; a newline is there twice."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["▁", "\n", "▁a", '▁"', '"', "你", *"abcdefghijklmnopqrstuvwxyz0123456789{}[],:.-"]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    file = Tokenizer(
        models.BPE(vocab=vocab, merges=[("▁", "a"), ("▁", '"')], byte_fallback=True, unk_token="<unk>")
    )
    file.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    file.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    file.add_special_tokens([AddedToken(name) for name in ("<unk>", "<s>", "</s>")])
    return saved(file, folder)


def saved(tokenizer: Tokenizer, folder: Path) -> ModelTokenizer:
    tokenizer.save(str(folder / "tokenizer.json"))
    return ModelTokenizer(folder / "tokenizer.json")


def allowed(compiler: Compiler, grammar: Grammar, ids: list[int]) -> set[int]:
    matching = compiler.compile(grammar)
    matching.read(ids, 0)
    bits = np.unpackbits(np.frombuffer(matching.matcher.compute_bitmask(), np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


@pytest.mark.parametrize("make", [byte_level, sentencepiece])
def test_every_token_of_a_json_text_may_come_and_no_control_token_may(make, tmp_path: Path) -> None:
    tokenizer = make(tmp_path)
    end = max(tokenizer.control_ids)
    tokens = [tokenizer.token_bytes(token) for token in range(tokenizer.num_tokens)]
    compiler = Compiler(Vocabulary(tokens, sorted(tokenizer.control_ids), [end]))
    ids = tokenizer.encode_plain(TEXT)
    assert b"".join(tokens[token] for token in ids).decode() == TEXT
    for place, token in enumerate(ids):
        may = allowed(compiler, Grammar("json_object"), ids[:place])
        assert token in may and not may & tokenizer.control_ids, TEXT[:place]
    assert allowed(compiler, Grammar("json_object"), ids) == {end}


def test_tokens_that_spell_the_same_are_allowed_together_and_half_a_character_must_go_on(
    tmp_path: Path,
) -> None:
    tokenizer = sentencepiece(tmp_path)
    tokens = [tokenizer.token_bytes(token) for token in range(tokenizer.num_tokens)]
    compiler = Compiler(Vocabulary(tokens, sorted(tokenizer.control_ids), [2]))
    newlines = {token for token, text in enumerate(tokens) if text == b"\n"}
    assert len(newlines) == 2 and newlines <= allowed(compiler, Grammar("lark", r"start: /[\n]+/"), [])
    half = [tokens.index(b"\xe4")]
    rest = allowed(compiler, Grammar("lark", "start: /.*/"), half)
    assert rest and all(0x80 <= tokens[token][0] < 0xC0 for token in rest)


def test_a_control_token_comes_where_a_grammar_names_it_and_several_ends_all_end(tmp_path: Path) -> None:
    tokenizer = byte_level(tmp_path)
    tokens = [tokenizer.token_bytes(token) for token in range(tokenizer.num_tokens)]
    compiler = Compiler(Vocabulary(tokens, sorted(tokenizer.control_ids), [0, 2]))
    named = Grammar("lark", 'start: <|im_start|> "x"')
    assert allowed(compiler, named, []) == {1}
    assert allowed(compiler, named, [1, tokens.index(b"x")]) == {0, 2}


@pytest.mark.model
def test_the_small_real_model_gives_json_that_is_valid(real_model_folder: Path) -> None:
    served = read_model_folder(real_model_folder, None)
    model = load_served(real_model_folder, "fp32", "cpu")
    driver = Driver(assemble(EngineConfig(kv_memory_mb=64), model).loop)
    driver.step(vocabulary_of(served))
    requests = []
    for n, city in enumerate(("Paris", "Rome", "北京", "a city of your choice")):
        prompt = served.prompts.build([Segment("user", f"Describe {city} as JSON.")]).ids
        spec = SamplingSpec(temperature=n * 0.4, seed=n, grammar=Grammar("json_schema", json.dumps(CITY)))
        requests.append(admit(prompt, max_tokens=200, sampling=spec, stop_ids=sorted(served.stop_ids)))
    driver.run(*requests)
    for request in requests:
        text = served.tokenizer.decode([t for t in driver.ids(request) if t not in served.stop_ids])
        assert driver.end(request).reason == "stop", text
        jsonschema.validate(json.loads(text), CITY)
