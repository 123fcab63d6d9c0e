"""Texts and pairs for encoders: in their frame, never too long, and never with a special token that a text wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from inference.front.encoder_tokenizer import read_embed_ids, read_pair_ids
from inference.models.tiny import IM_END, IM_START, write_tiny_verifier

TEXTS = ["Hello world", "", "你好, what is that?", "the the"]


def wordpiece(file: Path) -> Path:
    """As a BERT has it: its special tokens are ordinary entries, and there is one for unknown words."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello", "world", "[", "]", "sep", "##s"]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    _frame(tokenizer, "[CLS]", "[SEP]", words[:4])
    tokenizer.save(str(file))
    return file


def unigram(file: Path) -> Path:
    """As XLM-R has it: a text can spell a special token out of the vocabulary's own pieces."""
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(letter, -3.0) for letter in "abcdehlorwsunk<>/▁"[:-1]]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    _frame(tokenizer, "<s>", "</s>", [piece for piece, _ in pieces[:4]])
    tokenizer.save(str(file))
    return file


def _frame(tokenizer: Tokenizer, start: str, end: str, special: list[str]) -> None:
    ids = [(token, tokenizer.token_to_id(token)) for token in (start, end)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}", pair=f"{start} $A {end} {end} $B {end}", special_tokens=ids
    )
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])


def tiny(file: Path) -> Path:
    return write_tiny_verifier(file.parent / "tiny") / "tokenizer.json"


@pytest.fixture(params=[wordpiece, unigram, tiny])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    written: Path = request.param(tmp_path / "tokenizer.json")
    return written


def test_ids_are_those_of_the_folders_own_tokenizer(file: Path) -> None:
    plain = Tokenizer.from_file(str(file))
    embed_ids, pair_ids = read_embed_ids(file), read_pair_ids(file)
    assert embed_ids(TEXTS, "hello ", 512) == [plain.encode("hello " + text).ids for text in TEXTS]
    pairs = [(first, second) for first in TEXTS for second in TEXTS]
    assert pair_ids(pairs, 512) == [plain.encode(*pair).ids for pair in pairs]


@pytest.mark.parametrize(
    ("num_first", "num_second", "kept"),
    [(3, 3, (3, 3)), (50, 3, (13, 3)), (3, 50, (3, 13)), (50, 50, (8, 8)), (9, 50, (8, 8)), (50, 0, (16, 0))],
)
def test_of_a_pair_that_is_too_long_the_longer_text_is_cut(
    tmp_path: Path, num_first: int, num_second: int, kept: tuple[int, int]
) -> None:
    pair_ids = read_pair_ids(tiny(tmp_path / "tokenizer.json"))
    (ids,) = pair_ids([("x" * num_first, "y" * num_second)], 19)
    assert len(ids) <= 19
    x, y = (Tokenizer.from_file(str(tmp_path / "tiny" / "tokenizer.json")).token_to_id(c) for c in "xy")
    assert (ids.count(x), ids.count(y)) == kept
    assert ids[0] == 1 and ids[-1] == 2 and ids.count(2) == 2


def test_a_text_is_cut_to_the_longest_input(file: Path) -> None:
    (ids,) = read_embed_ids(file)(["hello world " * 50], "", 16)
    assert len(ids) == 16
    assert ids == [*Tokenizer.from_file(str(file)).encode("hello world " * 50).ids[:15], ids[-1]]


@pytest.mark.parametrize("num_times", [1, 3000])
def test_a_text_that_writes_special_tokens_stays_one_text(file: Path, num_times: int) -> None:
    """The frame's own tokens are counted: a text of separators must not add to them, nor take for ever."""
    special = [IM_START, IM_END, "[SEP]", "[CLS]", "</s>", "<s>", "<pad>"]
    text = "hello" + "".join(special) * num_times
    ids = set(Tokenizer.from_file(str(file)).encode("").ids)
    count = lambda row: sum(token in ids for token in row)  # noqa: E731
    (plain,) = read_pair_ids(file)([("hello", "world")], 100_000)
    (pair,) = read_pair_ids(file)([(text, text)], 100_000)
    assert count(pair) == count(plain)
    (single,) = read_embed_ids(file)([text], "", 100_000)
    assert count(single) == count(read_embed_ids(file)(["hello"], "", 512)[0])


def test_what_the_vocabulary_does_not_know_is_kept_as_unknown(tmp_path: Path) -> None:
    file = wordpiece(tmp_path / "tokenizer.json")
    (ids,) = read_embed_ids(file)(["hello zebra world"], "", 512)
    assert ids == [2, 4, 1, 5, 3]
