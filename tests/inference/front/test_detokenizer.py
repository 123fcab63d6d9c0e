from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from inference.front.detokenizer import Decoder, Detokenizer
from inference.models.tiny import byte_level_tokenizer
from inference.testing.tokenizer import ByteTokenizer, token_of


class FileDecoder:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))


BYTE_LEVEL = FileDecoder(byte_level_tokenizer())
NUM_IDS = byte_level_tokenizer().get_vocab_size()


def stream(decoder: Decoder, ids: list[int]) -> list[str]:
    detokenizer = Detokenizer(decoder)
    return [*(detokenizer.push(token) for token in ids), detokenizer.flush()]


@given(st.text(max_size=60))
def test_text_arrives_whole_and_in_whole_characters(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    ids = byte_level_tokenizer().encode(text, add_special_tokens=False).ids
    parts = stream(BYTE_LEVEL, ids)
    assert "".join(parts) == text
    assert "\ufffd" in text or not any("\ufffd" in part for part in parts)


@given(st.lists(st.integers(3, NUM_IDS - 1), max_size=80))
def test_any_ids_give_what_decode_gives(ids: list[int]) -> None:
    assert "".join(stream(BYTE_LEVEL, ids)) == BYTE_LEVEL.decode(ids)


@given(st.lists(st.sampled_from([0xE4, 0xBD, 0xA0, 0xF0, 0x9F, 0x41, 0x80, 0xC3]), max_size=120))
def test_broken_bytes_give_what_decode_gives(raw: list[int]) -> None:
    decoder = ByteTokenizer()
    assert "".join(stream(decoder, raw)) == decoder.decode(raw)


def test_an_endless_row_of_broken_bytes_is_let_go() -> None:
    detokenizer = Detokenizer(ByteTokenizer())
    released = [detokenizer.push(0x80) for _ in range(1000)]
    assert len("".join(released)) > 950
    assert detokenizer.num_pending < 50


class PaddedDecoder:
    """Id 999 has no text, as the unused ids at the end of many vocabularies."""

    def decode(self, ids: Sequence[int]) -> str:
        return ByteTokenizer().decode([token for token in ids if token != 999])


@given(st.lists(st.sampled_from([999, 0x61, 0xE4, 0xBD, 0xA0]), max_size=200))
def test_ids_without_text_change_nothing(ids: list[int]) -> None:
    assert "".join(stream(PaddedDecoder(), ids)) == PaddedDecoder().decode(ids)


def test_an_endless_row_of_ids_without_text_is_not_kept() -> None:
    detokenizer = Detokenizer(PaddedDecoder())
    assert detokenizer.push(0x61) == "a"
    assert {detokenizer.push(999) for _ in range(1000)} == {""}
    assert detokenizer.num_pending <= 16
    assert detokenizer.push(0x62) == "b"


def test_a_character_is_released_with_its_last_token() -> None:
    detokenizer = Detokenizer(ByteTokenizer())
    assert [detokenizer.push(byte) for byte in "a🌤".encode()] == ["a", "", "", "", "🌤"]


def test_joined_blanks_of_sentencepiece_words_are_kept() -> None:
    pieces = ["▁My", "▁name", "▁is", "▁Lin", ".", "▁▁", "x"]
    tokenizer = Tokenizer(
        models.WordLevel({piece: number for number, piece in enumerate(pieces)}, unk_token="x")
    )
    tokenizer.decoder = decoders.Metaspace()
    assert stream(FileDecoder(tokenizer), list(range(len(pieces)))) == [
        "My",
        " name",
        " is",
        " Lin",
        ".",
        "  ",
        "x",
        "",
    ]


@pytest.mark.parametrize("split", [1, 2, 3])
def test_tokens_of_several_bytes_may_cut_anywhere(split: int) -> None:
    raw = "你好🌤️!".encode()
    ids = [token_of(raw[start : start + split]) for start in range(0, len(raw), split)]
    assert "".join(stream(ByteTokenizer(), ids)) == "你好🌤️!"
