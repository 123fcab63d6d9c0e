"""Fused layers take their weights from the files by name: the same numbers as transformers', kept once."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from inference.config import EngineConfig
from inference.core.messages import Admit, SamplingSpec
from inference.core.startup import assemble
from inference.models.errors import ModelNotUsable
from inference.models.loader import LoadedModel, load_causal_lm, load_served
from inference.models.plain_config import generation_eos, read_plain_config
from inference.models.tiny import write_tiny_model
from tests.inference.core.driver import Driver

FUSED = "fused layers"
FAMILIES = ["llama", "mistral", "qwen2", "qwen3"]
# As they come out of pruning and distillation: fewer layers, a narrower MLP, heads that are not width / heads wide.
MADE_SMALLER: dict[str, dict[str, Any]] = {
    "pruned layers": {"num_hidden_layers": 1},
    "pruned mlp": {"intermediate_size": 72},
    "pruned heads": {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16},
    "distilled": {"hidden_size": 48, "head_dim": 24, "tie_word_embeddings": False},
}


def _greedy(model: LoadedModel, prompt: list[int], num_tokens: int = 12) -> list[int]:
    driver = Driver(assemble(EngineConfig(kv_memory_mb=4), model).loop)
    admit = Admit("one", prompt, SamplingSpec(temperature=0), num_tokens, [], salt=b"", conversation=b"c")
    return driver.generate(admit)


def _plain_greedy(folder: Path, prompt: list[int], num_tokens: int = 12) -> list[int]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, "max_new_tokens": num_tokens}
    ids = torch.tensor([prompt])
    answer = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    return list(answer[0, len(prompt) :].tolist())


def _edit(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("kind", MADE_SMALLER)
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_pruned_and_distilled_models_are_ordinary_folders(family: str, kind: str, tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path, family, **MADE_SMALLER[kind])
    model = load_served(folder, "fp32", "cpu")
    assert model.network.description.startswith(FUSED)
    prompt = [1, *range(40, 60)]
    assert _greedy(model, prompt) == _plain_greedy(folder, prompt)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weights", ["same", "int8"])
def test_facts_are_those_that_transformers_tells(family: str, weights: str, tmp_path: Path) -> None:
    shape = {"sliding_window": 64} if family == "mistral" else {}
    folder = write_tiny_model(tmp_path, family, **shape)
    fused, plain = load_served(folder, "fp32", "cpu", "auto", weights), load_causal_lm(folder, "fp32", "cpu")
    assert fused.network.description.startswith(FUSED)
    for fact in ("num_layers", "num_kv_heads", "head_dim", "vocab_size", "max_context", "eos_ids"):
        assert getattr(fused, fact) == getattr(plain, fact), fact
    assert fused.sliding_windows == plain.sliding_windows


def test_int8_is_another_model_to_kept_keys_and_says_so(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    same, int8 = (load_served(folder, "fp32", "cpu", "auto", weights) for weights in ("same", "int8"))
    assert same.fingerprint == load_causal_lm(folder, "fp32", "cpu").fingerprint
    assert int8.fingerprint != same.fingerprint
    assert (same.precision, "int8" in int8.precision) == ("fp32", True)
    assert assemble(EngineConfig(kv_memory_mb=4), int8).ready.dtype == int8.precision
    assert int8.weight_bytes < same.weight_bytes / 3


def test_int8_is_refused_for_layers_of_transformers(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path, "gemma2")
    with pytest.raises(ModelNotUsable, match="ENGINE_WEIGHTS=int8 needs the fused layers"):
        load_served(folder, "fp32", "cpu", "auto", "int8")


@pytest.mark.parametrize("weights", ["same", "int8"])
@pytest.mark.parametrize("is_tied", [True, False])
def test_no_plain_matrix_stays_beside_a_packed_one(weights: str, is_tied: bool, tmp_path: Path) -> None:
    """All numbers that lie in torch's own order after a load: vectors, and the word table, which lies in its file."""
    folder = write_tiny_model(tmp_path, tie_word_embeddings=is_tied)
    gc.collect()
    # Not isinstance: it looks into modules that warn of themselves.
    before = {id(each) for each in gc.get_objects() if issubclass(type(each), torch.Tensor)}
    model = load_served(folder, "fp32", "cpu", "auto", weights)
    gc.collect()
    made = [
        each
        for each in gc.get_objects()
        if issubclass(type(each), torch.Tensor) and id(each) not in before and not each.is_mkldnn
    ]
    # Two views of one place count once.
    numbers = {each.data_ptr(): each.nbytes for each in made if each.is_floating_point()}
    table = model.vocab_size * 64 * 4
    assert table < sum(numbers.values()) < table + 12_000 < table + model.weight_bytes


def test_the_word_table_is_looked_up_in_its_file(tmp_path: Path) -> None:
    """Rows of a bf16 file are widened as they are looked up; a wide table would be twice the file."""
    folder = write_tiny_model(tmp_path)
    weights = {name: weight.bfloat16() for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    prompt = [1, *range(40, 60)]
    assert _greedy(load_served(folder, "fp32", "cpu"), prompt) == _plain_greedy(folder, prompt)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_plain_config_says_what_transformers_reads(family: str, tmp_path: Path) -> None:
    for number, shape in enumerate(({}, MADE_SMALLER["distilled"], {"sliding_window": None})):
        folder = write_tiny_model(tmp_path / str(number), family, **shape)
        plain, full = read_plain_config(folder), AutoConfig.from_pretrained(folder)
        assert plain is not None
        for name, value in vars(plain).items():
            if name not in ("layer_types", "attention_bias", "mlp_bias"):
                assert getattr(full, name, value) == value, name
        assert plain.attention_bias == getattr(full, "attention_bias", False)


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "gemma2"},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}},
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        {"layer_types": ["full_attention", "linear_attention"]},
        {"quantization_config": {"quant_method": "gptq"}},
        {"hidden_act": "gelu"},
        {"sliding_window": 16},
        {"kv_lora_rank": 8},
        {"is_encoder_decoder": True},
        {"auto_map": {"AutoConfig": "evil.Config"}},
        {"rms_norm_eps": None},
    ],
)
def test_whatever_is_not_plain_is_left_to_transformers(fields: dict[str, Any], tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    assert read_plain_config(folder) is not None
    _edit(folder, **fields)
    assert read_plain_config(folder) is None


def test_scaled_positions_are_fused_too(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    rope = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0}
    rope |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    _edit(folder, rope_parameters=rope)
    model = load_served(folder, "fp32", "cpu")
    assert model.network.description.startswith(FUSED)
    prompt = [1, *range(40, 140)]
    assert _greedy(model, prompt) == _plain_greedy(folder, prompt)


def test_missing_weights_are_refused_in_the_words_of_the_loader(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelNotUsable, match=r"1 weights are missing.*layers\.1\.mlp\.up_proj"):
        load_served(folder, "fp32", "cpu")


def test_files_in_several_parts_are_read(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    whole = load_served(folder, "fp32", "cpu")
    prompt = [1, *range(40, 60)]
    expected = _greedy(whole, prompt)
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: weights[name] for name in part}, folder / file, metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    weight_map = {name: file for file, part in parts.items() for name in part}
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    model = load_served(folder, "fp32", "cpu")
    assert model.network.description.startswith(FUSED)
    assert _greedy(model, prompt) == expected


def test_ends_of_generation_are_read_whatever_the_file_says(tmp_path: Path) -> None:
    assert generation_eos(tmp_path) is None
    for text, ends in (('{"eos_token_id": [0, 2]}', [0, 2]), ("[]", None), ("{", None), ("{}", None)):
        (tmp_path / "generation_config.json").write_text(text)
        assert generation_eos(tmp_path) == ends


def test_a_plain_model_is_loaded_without_transformers(tmp_path: Path) -> None:
    """Its import alone is a second of every start."""
    folder = write_tiny_model(tmp_path)
    program = (
        "import sys; from pathlib import Path; from inference.core.startup import assemble, load_served;"
        f"load_served(Path({str(folder)!r}), 'fp32', 'cpu'); print('transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "False"
