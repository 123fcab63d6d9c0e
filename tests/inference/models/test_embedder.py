from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

from inference.models.embedder import Embedder, load_embedder
from inference.models.errors import ModelNotUsable
from inference.models.tiny import write_tiny_embedder

SHORT, LONG = [1, 40, 2], [1, *range(50, 90), 2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_embedder(tmp_path_factory.mktemp("embedder"))


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return load_embedder(folder, "fp32", "cpu")


def _copy_with(folder: Path, target: Path, files: dict[str, Any]) -> Path:
    target.mkdir()
    for path in folder.iterdir():
        (target / path.name).symlink_to(path)
    for name, fields in files.items():
        path = target / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(fields))
    return target


def _states(folder: Path, ids: list[int]) -> np.ndarray:
    with torch.no_grad():
        return AutoModel.from_pretrained(folder).eval()(torch.tensor([ids])).last_hidden_state[0].numpy()


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_vectors_are_float32_of_length_one(embedder: Embedder) -> None:
    vectors = embedder.embed_ids([SHORT, LONG])
    assert vectors.shape == (2, embedder.dim) == (2, 32)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)


def test_vector_is_the_mean_of_the_token_states(folder: Path, embedder: Embedder) -> None:
    np.testing.assert_allclose(
        embedder.embed_ids([LONG])[0], _unit(_states(folder, LONG).mean(axis=0)), atol=1e-5
    )


def test_company_in_a_batch_changes_nothing(embedder: Embedder) -> None:
    alone = np.concatenate([embedder.embed_ids([SHORT]), embedder.embed_ids([LONG])])
    np.testing.assert_allclose(embedder.embed_ids([SHORT, LONG]), alone, atol=1e-5)


def test_nothing_gives_an_empty_array(embedder: Embedder) -> None:
    assert embedder.embed_ids([]).shape == (0, 32)


@pytest.mark.parametrize("ids", [[], [1] * 513], ids=["empty", "too long"])
def test_impossible_lengths_are_refused(ids: list[int], embedder: Embedder) -> None:
    with pytest.raises(ValueError, match="allowed are 1 to 512"):
        embedder.embed_ids([SHORT, ids])


@pytest.mark.parametrize(("mode", "row"), [("cls", 0), ("lasttoken", -1)])
def test_pooling_of_the_folder_is_used(mode: str, row: int, folder: Path, tmp_path: Path) -> None:
    pooling = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": mode == "cls"}
    pooling |= {"pooling_mode_lasttoken": mode == "lasttoken"}
    other = _copy_with(folder, tmp_path / "other", {"1_Pooling/config.json": pooling})
    vectors = load_embedder(other, "fp32", "cpu").embed_ids([SHORT, LONG])
    for vector, ids in zip(vectors, (SHORT, LONG), strict=True):
        np.testing.assert_allclose(vector, _unit(_states(folder, ids)[row]), atol=1e-5)


@pytest.mark.parametrize(
    "files",
    [
        {"1_Pooling/config.json": {"pooling_mode_max_tokens": True}},
        {"modules.json": [{"type": "sentence_transformers.models.Dense"}]},
    ],
    ids=["pooling", "module"],
)
def test_encoder_that_would_be_computed_wrongly_is_refused(
    files: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelNotUsable, match="not served"):
        load_embedder(_copy_with(folder, tmp_path / "other", files), "fp32", "cpu")


def test_prefix_comes_from_the_folder_or_from_the_family(folder: Path, tmp_path: Path) -> None:
    prompts = {"config_sentence_transformers.json": {"prompts": {"query": "search: "}}}
    named = load_embedder(_copy_with(folder, tmp_path / "named", prompts), "fp32", "cpu")
    family = load_embedder(_copy_with(folder, tmp_path / "multilingual-e5-base", {}), "fp32", "cpu")
    plain = load_embedder(_copy_with(folder, tmp_path / "minilm", {}), "fp32", "cpu")
    assert (named.prefix, family.prefix, plain.prefix) == ("search: ", "query: ", "")


def test_tag_changes_with_everything_that_changes_vectors(
    folder: Path, embedder: Embedder, tmp_path: Path
) -> None:
    same_name = folder.name
    pooled = {"1_Pooling/config.json": {"pooling_mode_cls_token": True}}
    (tmp_path / "seed").mkdir()
    others = [
        write_tiny_embedder(tmp_path / "seed" / same_name, seed=1),
        _copy_with(folder, tmp_path / "pooling", pooled),
    ]
    digests = {load_embedder(other, "fp32", "cpu").tag.rpartition("-")[2] for other in others}
    assert len(digests | {embedder.tag.rpartition("-")[2]}) == 3
    assert embedder.tag.startswith(f"{same_name}-")


def test_shorter_limit_of_the_folder_is_kept(folder: Path, tmp_path: Path) -> None:
    limit = {"sentence_bert_config.json": {"max_seq_length": 128}}
    assert load_embedder(_copy_with(folder, tmp_path / "other", limit), "fp32", "cpu").max_tokens == 128
