from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from inference.config import EngineConfig
from inference.core.messages import VerifyPairs
from inference.core.startup import start_core
from inference.front.encoder_tokenizer import read_shared_ids
from inference.front.model_folder import FolderError, read_model_folder
from inference.gateway.core import load_lane
from inference.models.adapter import CrossEncoder, weights_digest
from inference.models.adapter_config import WEIGHTS_NAME, AdapterConfig, write_adapter_config
from inference.models.embedder import Embedder, load_embedder
from inference.models.errors import ModelNotUsable
from inference.models.tiny import write_tiny_embedder, write_tiny_model
from inference.models.verifier import load_verifier

SHORT, LONG = [1, 40, 2, 41, 2], [1, *range(50, 90), 2, *range(60, 75), 2]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_embedder(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def embedder(base: Path) -> Embedder:
    return load_embedder(base, "fp32", "cpu")


def write_adapter(folder: Path, embedder: Embedder, num_layers: int) -> CrossEncoder:
    """With random weights everywhere, so that each of them counts."""
    folder.mkdir(exist_ok=True)
    model = CrossEncoder(embedder.model, num_layers).eval()
    generator = torch.Generator().manual_seed(1)
    for weight in model.own_parameters().values():
        weight.data += torch.randn(weight.shape, generator=generator) * 0.2
    save_file({name: weight.data for name, weight in model.own_parameters().items()}, folder / WEIGHTS_NAME)
    config = AdapterConfig("tiny", weights_digest(embedder.model), separator=2, num_layers=num_layers)
    write_adapter_config(folder, config)
    return model


@pytest.mark.parametrize("num_layers", [1, 2])
def test_loaded_adapters_score_as_the_trained_model_does(
    embedder: Embedder, tmp_path: Path, num_layers: int
) -> None:
    model = write_adapter(tmp_path, embedder, num_layers)
    verifier = load_verifier(tmp_path, embedder=embedder)
    scores = verifier.score_ids([SHORT, LONG])
    for ids, score in zip((SHORT, LONG), scores, strict=True):
        types = torch.tensor([[0] * (ids.index(2) + 1) + [1] * (len(ids) - ids.index(2) - 1)])
        with torch.no_grad():
            embeddings = embedder.model.get_input_embeddings()(torch.tensor([ids]))
            logits = model(inputs_embeds=embeddings, token_type_ids=types).logits
        assert score == pytest.approx(float(logits.sigmoid()), abs=1e-5)
    assert verifier.tag != load_verifier(base_copy(tmp_path, embedder, num_layers), embedder=embedder).tag


def base_copy(folder: Path, embedder: Embedder, num_layers: int) -> Path:
    """The same folder with one weight changed."""
    other = folder / folder.name
    write_adapter(other, embedder, num_layers)
    tensors = load_file(other / WEIGHTS_NAME)
    save_file(tensors | {"score.bias": tensors["score.bias"] + 1}, other / WEIGHTS_NAME)
    return other


def test_vectors_stay_what_they_were_and_frozen_weights_are_shared(
    embedder: Embedder, tmp_path: Path
) -> None:
    before = embedder.embed_ids([SHORT, LONG])
    write_adapter(tmp_path, embedder, num_layers=1)
    verifier = load_verifier(tmp_path, embedder=embedder)
    np.testing.assert_array_equal(embedder.embed_ids([SHORT, LONG]), before)
    addresses = {weight.data_ptr() for weight in embedder.model.parameters()}
    own = sum(weight.numel() for weight in verifier.model.parameters() if weight.data_ptr() not in addresses)
    trained = sum(weight.numel() for weight in CrossEncoder(embedder.model, 1).own_parameters().values())
    assert own == trained
    assert verifier.model.get_input_embeddings().weight.data_ptr() in addresses


def test_only_the_encoder_they_were_trained_on_is_taken(embedder: Embedder, tmp_path: Path) -> None:
    write_adapter(tmp_path, embedder, num_layers=1)
    other = load_embedder(write_tiny_embedder(tmp_path / "other", seed=7), "fp32", "cpu")
    with pytest.raises(ModelNotUsable, match="set EMBED_MODEL"):
        load_verifier(tmp_path, embedder=other)
    with pytest.raises(ModelNotUsable, match="set EMBED_MODEL"):
        load_verifier(tmp_path)


def test_the_digest_does_not_depend_on_the_precision(base: Path, embedder: Embedder) -> None:
    assert weights_digest(load_embedder(base, "bf16", "cpu").model) == weights_digest(embedder.model)


def test_a_damaged_folder_is_refused_in_one_line(embedder: Embedder, tmp_path: Path) -> None:
    write_adapter(tmp_path, embedder, num_layers=1)
    config = AdapterConfig("tiny", weights_digest(embedder.model), separator=2, num_layers=1)
    for wrong, message in (
        (replace(config, num_layers=2), "does not hold"),
        (replace(config, num_layers=-1), "damaged"),
    ):
        write_adapter_config(tmp_path, wrong)
        with pytest.raises(ModelNotUsable, match=message):
            load_verifier(tmp_path, embedder=embedder)
    write_adapter_config(tmp_path, config)
    (tmp_path / WEIGHTS_NAME).write_bytes(b"cut")
    with pytest.raises(ModelNotUsable, match="safetensors"):
        load_verifier(tmp_path, embedder=embedder)


def test_pairs_are_framed_by_the_ends_of_the_encoders_texts(base: Path) -> None:
    embed_ids, pair_ids = read_shared_ids(base / "tokenizer.json")
    (first,), (second,) = embed_ids(["Hello"], "", 512), embed_ids(["world"], "", 512)
    assert pair_ids([("Hello", "world")], 512) == [[*first, *second[1:]]]
    assert first[0] == 1
    assert first[-1] == 2


def test_the_engine_and_the_gateway_serve_adapters_over_their_encoder(
    base: Path, embedder: Embedder, tmp_path: Path
) -> None:
    adapter, model = tmp_path / "adapter", write_tiny_model(tmp_path / "model")
    write_adapter(adapter, embedder, num_layers=1)
    config = EngineConfig(kv_memory_mb=1, dtype="fp32", device="cpu", kv_disk_mb=0)
    served = read_model_folder(model, base, adapter)
    assert served.pair_ids is not None
    ids = served.pair_ids([("Hello", "world")], 512)
    core = start_core(config, model, base, lambda line: None, adapter)
    packs = list(core.loop.step([VerifyPairs("v", ids)]))
    while core.loop.has_work:
        packs += core.loop.step()
    (answer,) = [answer for pack in packs for answer in pack.verified]
    alone = load_verifier(adapter, embedder=embedder).score_ids(ids)
    assert answer.scores == pytest.approx(alone.tolist(), abs=0.02)  # the engine may compute in bf16
    lane = load_lane(config, base, adapter)
    for ready in (core.ready, lane):
        assert ready.supports_verify
        assert ready.verifier.startswith("adapter-")
        assert ready.verify_max_tokens == 512
    with pytest.raises(ModelNotUsable, match="set EMBED_MODEL"):
        start_core(config, model, None, lambda line: None, adapter)
    with pytest.raises(FolderError, match="set EMBED_MODEL"):
        read_model_folder(model, None, adapter)
