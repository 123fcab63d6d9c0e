"""What the front reads from a folder, beside its prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inference.front.model_folder import FolderError, read_model_folder
from inference.models.tiny import write_tiny_embedder, write_tiny_model, write_tiny_verifier


def test_an_end_that_the_vocabulary_does_not_have_is_left_out(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "m")
    ends = json.dumps({"eos_token_id": [2, 99_999]})
    (folder / "generation_config.json").write_text(ends)
    assert read_model_folder(folder, None).stop_ids == {2}


def test_texts_and_pairs_are_framed_by_the_tokenizers_of_their_folders(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "m")
    embedder, verifier = write_tiny_embedder(tmp_path / "e"), write_tiny_verifier(tmp_path / "v")
    both = read_model_folder(folder, embedder, verifier)
    assert both.embed_ids is not None and both.pair_ids is not None
    assert both.embed_ids(["a"], "", 512) == [[1, *both.tokenizer.encode_plain("a"), 2]]
    (pair,) = both.pair_ids([("a", "b")], 512)
    assert [token for token in pair if token in (1, 2)] == [1, 2, 2]
    neither = read_model_folder(folder, None)
    assert neither.embed_ids is None and neither.pair_ids is None


def test_an_encoder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    folder, verifier = write_tiny_model(tmp_path / "m"), write_tiny_verifier(tmp_path / "v")
    (verifier / "tokenizer.json").unlink()
    with pytest.raises(FolderError, match=r"tokenizer\.json is missing"):
        read_model_folder(folder, None, verifier)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"model": 5}', '{"added_tokens": [{}]}', "\x00"])
def test_a_tokenizer_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    folder = write_tiny_model(tmp_path / "model")
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(FolderError, match=r"tokenizer\.json is no tokenizer"):
        read_model_folder(folder, None)
