"""Token by token the bytes of a text, for the ways in which vocabularies write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models

from inference import settings
from inference.config import EngineConfig
from inference.front.model_tokenizer import ModelTokenizer
from inference.models.resolve import resolve
from inference.models.tiny import IM_START, byte_level_tokenizer

TEXT = "Hello world, 你好 🌤️\n\ttabs  and naïve “quotes”"


def saved(tokenizer: Tokenizer, folder: Path) -> ModelTokenizer:
    tokenizer.save(str(folder / "tokenizer.json"))
    return ModelTokenizer(folder / "tokenizer.json")


def test_a_byte_level_vocabulary_gives_every_byte_also_of_half_characters(tmp_path: Path) -> None:
    tokenizer = saved(byte_level_tokenizer(), tmp_path)
    ids = tokenizer.encode_plain(TEXT)
    assert b"".join(map(tokenizer.token_bytes, ids)) == TEXT.encode()
    assert tokenizer.token_bytes(tokenizer.encode_plain("好")[0]) == "好".encode()[:1]
    assert tokenizer.token_bytes(tokenizer.control_id(IM_START)) == IM_START.encode()


@pytest.mark.parametrize(
    "blank",
    [decoders.Metaspace(), decoders.Replace("▁", " ")],
    ids=["metaspace", "replace"],
)
def test_a_sentencepiece_vocabulary_gives_bytes_of_its_byte_pieces_and_blanks(
    blank: object, tmp_path: Path
) -> None:
    pieces = ["<unk>", "▁My", "▁name", "好", *(f"<0x{byte:02X}>" for byte in range(256))]
    file = Tokenizer(
        models.WordLevel({piece: number for number, piece in enumerate(pieces)}, unk_token="<unk>")
    )
    file.decoder = decoders.Sequence([blank, decoders.ByteFallback(), decoders.Fuse()])
    file.add_special_tokens([AddedToken("<s>")])
    tokenizer = saved(file, tmp_path)
    spelled = [
        tokenizer.token_bytes(pieces.index(piece)) for piece in ("▁My", "▁name", "好", "<0xE4>", "<0x0A>")
    ]
    assert spelled == [b" My", b" name", "好".encode(), b"\xe4", b"\n"]
    assert tokenizer.token_bytes(len(pieces)) == b"<s>"


def test_a_token_that_the_vocabulary_does_not_have_is_empty(tmp_path: Path) -> None:
    assert saved(byte_level_tokenizer(), tmp_path).token_bytes(10**6) == b""


@pytest.mark.model
def test_the_default_model_spells_every_text() -> None:
    config = settings.read(EngineConfig)
    tokenizer = ModelTokenizer(resolve(config.model, config.data_dir) / "tokenizer.json")
    assert b"".join(map(tokenizer.token_bytes, tokenizer.encode_plain(TEXT))) == TEXT.encode()
