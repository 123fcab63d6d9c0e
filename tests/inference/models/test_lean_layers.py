"""Lean layers give the numbers of transformers' own, whatever is in a batch, and pack only what loses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel

from inference import settings
from inference.config import EngineConfig
from inference.front.encoder_tokenizer import read_shared_ids
from inference.models import lean_layers
from inference.models.adapter import CrossEncoder
from inference.models.embedder import load_embedder
from inference.models.encoder import padded
from inference.models.lean_layers import LeanLayer, make_lean
from inference.models.resolve import OWN_VERIFIER, OWN_VERIFIER_OVER, resolve
from inference.models.tiny import write_tiny_embedder
from inference.models.verifier import load_verifier

SHORT, LONG, OTHER = [1, 40, 2], [1, *range(50, 90), 2], [1, *range(20, 39), 2]
BATCHES = ([SHORT], [LONG], [SHORT, LONG, OTHER], [OTHER, OTHER])
SHAPE = {
    "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
TEXTS = (
    "hi",
    "Which of the plans let a team archive contracts?",
    "今天北京的天气怎么样？",
    "请问这个套餐可以让整个团队一起导出去年所有的合同和发票吗？如果可以，要怎么操作？",
    "A long question. " * 12,
)


def encoder(family: str, *, is_half: bool) -> Any:
    """With random weights, those of `is_half` as a file in half precision has them."""
    torch.manual_seed(3)
    model = AutoModel.from_config(AutoConfig.for_model(family, **SHAPE))
    for weight in model.parameters():
        weight.data = torch.randn(weight.shape) * 0.3
        weight.data = weight.data.half().float() if is_half else weight.data
    return model.eval().requires_grad_(False)


def states(model: Any, batch: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Of each text, without its padding."""
    ids, mask = padded(batch, 512, "cpu")
    with torch.inference_mode():
        found = model(inputs_embeds=model.get_input_embeddings()(ids).float(), attention_mask=mask)
    return [row[: len(text)].numpy() for row, text in zip(found.last_hidden_state, batch, strict=True)]


def largest_difference(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    return max(float(np.abs(one - other).max()) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("is_half", [True, False], ids=["packed", "too fine to pack"])
@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_states_are_those_of_transformers(family: str, is_half: bool) -> None:
    """Weights that half precision would round are never packed: that changes these states by a thousandth."""
    model = encoder(family, is_half=is_half)
    before = [states(model, batch) for batch in BATCHES]
    make_lean(model)
    assert all(isinstance(layer, LeanLayer) for layer in model.encoder.layer)
    for batch, expected in zip(BATCHES, before, strict=True):
        assert largest_difference(states(model, batch), expected) < 1e-5


def change_of_a_batch(*, is_half: bool) -> float:
    model, batch = encoder("bert", is_half=is_half), [SHORT, LONG, OTHER]
    before = states(model, batch)
    make_lean(model)
    return largest_difference(states(model, batch), before)


@pytest.mark.skipif(torch.backends.quantized.engine not in ("x86", "fbgemm"), reason="nothing is packed here")
def test_packing_what_half_precision_rounds_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean_layers, "_loses_nothing_as_half", lambda weight: True)
    assert change_of_a_batch(is_half=True) < 1e-5
    assert change_of_a_batch(is_half=False) > 1e-4


def test_a_layer_that_forgot_the_padding_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = LeanLayer.forward
    monkeypatch.setattr(LeanLayer, "forward", lambda layer, states, *_, **__: whole(layer, states))
    assert change_of_a_batch(is_half=True) > 1e-2


def test_other_numbers_than_fp32_are_computed_as_they_are(tmp_path: Path) -> None:
    folder = write_tiny_embedder(tmp_path)
    plain, lean = (load_embedder(folder, "bf16", "cpu") for _ in range(2))
    make_lean(lean.model)
    np.testing.assert_allclose(lean.embed_ids([SHORT, LONG]), plain.embed_ids([SHORT, LONG]), atol=0.02)


def test_an_encoder_of_another_build_stays_as_it_is() -> None:
    fields = {"vocab_size": 100, "dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4}
    model = AutoModel.from_config(AutoConfig.for_model("distilbert", **fields))
    layers = list(model.transformer.layer)
    make_lean(model)
    assert list(model.transformer.layer) == layers


def test_layers_that_two_models_share_are_made_once() -> None:
    model = encoder("bert", is_half=True)
    pairs = CrossEncoder(model, num_layers=1)
    make_lean(model, pairs)
    (lower, upper), (shared, own) = model.encoder.layer, pairs.encoder.encoder.layer
    assert shared is lower
    assert own is not upper


@pytest.fixture(scope="module")
def folder() -> Path:
    return resolve(OWN_VERIFIER_OVER, settings.read(EngineConfig).data_dir)


def in_batches(rows: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
    """Each alone, and all at once."""
    yield from ([row] for row in rows)
    yield rows


@pytest.mark.model
def test_the_default_encoder_gives_the_same_vectors_in_every_company(folder: Path) -> None:
    plain, lean = (load_embedder(folder, "fp32", "cpu") for _ in range(2))
    make_lean(lean.model)
    embed_ids, _ = read_shared_ids(folder / "tokenizer.json")
    for batch in in_batches(embed_ids(TEXTS, plain.prefix, plain.max_tokens)):
        assert largest_difference(states(lean.model, batch), states(plain.model, batch)) < 1e-5
        np.testing.assert_allclose(lean.embed_ids(batch), plain.embed_ids(batch), atol=1e-6)


@pytest.mark.model
def test_the_own_verifier_gives_the_same_scores_in_every_company(folder: Path) -> None:
    embedder = load_embedder(folder, "fp32", "cpu")
    plain, lean = (load_verifier(OWN_VERIFIER, embedder=embedder) for _ in range(2))
    _, pair_ids = read_shared_ids(folder / "tokenizer.json")
    pairs = pair_ids([(one, other) for one in TEXTS for other in TEXTS[:3]], plain.max_tokens)
    expected = [plain.score_ids(batch) for batch in in_batches(pairs)]
    make_lean(embedder.model, lean.model)
    for batch, scores in zip(in_batches(pairs), expected, strict=True):
        np.testing.assert_allclose(lean.score_ids(batch), scores, atol=1e-5)
