from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from inference.models.errors import ModelNotUsable
from inference.models.tiny import write_tiny_embedder, write_tiny_model, write_tiny_verifier
from inference.models.verifier import load_verifier

# Two pairs in the frame of the tiny tokenizer: 1 first 2 second 2.
SHORT, LONG = [1, 40, 2, 41, 2], [1, *range(50, 90), 2, *range(60, 75), 2]
LABELS = {"id2label": {"0": "duplicate", "1": "not_duplicate"}}


def types(ids: list[int]) -> list[int]:
    first = ids.index(2) + 1
    return [0] * first + [1] * (len(ids) - first)


def logits(folder: Path, ids: list[int]) -> torch.Tensor:
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(torch.tensor([ids]), token_type_ids=torch.tensor([types(ids)])).logits[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_verifier(tmp_path_factory.mktemp("verifier"))


def test_one_label_is_a_sigmoid(folder: Path) -> None:
    """With the types of both texts: a forgotten one changes the score."""
    scores = load_verifier(folder, "fp32", "cpu").score_ids([SHORT, LONG])
    expected = [float(logits(folder, ids)[0].sigmoid()) for ids in (SHORT, LONG)]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert len(set(scores.tolist())) == 2


@pytest.mark.parametrize(("names", "same"), [({}, 1), (LABELS, 0)], ids=["unnamed", "named"])
def test_of_two_labels_it_is_the_probability_of_the_same(tmp_path: Path, names: dict, same: int) -> None:
    folder = write_tiny_verifier(tmp_path, num_labels=2)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | names))
    score = load_verifier(folder, "fp32", "cpu").score_ids([LONG])[0]
    assert score == pytest.approx(float(logits(folder, LONG).softmax(-1)[same]), abs=1e-5)


def test_company_in_a_batch_changes_nothing(folder: Path) -> None:
    verifier = load_verifier(folder, "fp32", "cpu")
    alone = [float(verifier.score_ids([ids])[0]) for ids in (SHORT, LONG)]
    np.testing.assert_allclose(verifier.score_ids([SHORT, LONG]), alone, atol=1e-5)
    assert verifier.score_ids([]).shape == (0,)
    with pytest.raises(ValueError, match="1 to 512"):
        verifier.score_ids([[1] * 513])


def test_the_tag_changes_with_the_weights(folder: Path, tmp_path: Path) -> None:
    other = write_tiny_verifier(tmp_path / folder.name, seed=1)
    tags = {load_verifier(path, "fp32", "cpu").tag for path in (folder, other)}
    assert len(tags) == 2
    assert all(tag.startswith(folder.name) for tag in tags)


def test_what_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    sentence_encoder = write_tiny_embedder(tmp_path / "encoder")
    with pytest.raises(ModelNotUsable, match=r"weights are missing.*classifier"):
        load_verifier(sentence_encoder, "fp32", "cpu")
    with pytest.raises(ModelNotUsable, match="no encoders"):
        load_verifier(write_tiny_model(tmp_path / "lm"), "fp32", "cpu")
    with pytest.raises(ModelNotUsable, match="1 or 2 labels"):
        load_verifier(write_tiny_verifier(tmp_path / "nli", num_labels=3), "fp32", "cpu")
    with pytest.raises(ModelNotUsable, match="not a folder"):
        load_verifier(tmp_path / "nothing", "fp32", "cpu")


def test_a_tokenizer_that_does_not_frame_pairs_is_refused(folder: Path, tmp_path: Path) -> None:
    other = write_tiny_verifier(tmp_path / "other")
    fields = json.loads((other / "tokenizer.json").read_text())
    (other / "tokenizer.json").write_text(json.dumps(fields | {"post_processor": None}))
    with pytest.raises(ModelNotUsable, match="apart"):
        load_verifier(other, "fp32", "cpu")
    (other / "tokenizer.json").unlink()
    with pytest.raises(ModelNotUsable, match="missing"):
        load_verifier(other, "fp32", "cpu")
