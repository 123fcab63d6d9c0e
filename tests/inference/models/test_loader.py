from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from inference.models import precision
from inference.models.errors import ModelNotUsable
from inference.models.loader import load_causal_lm
from inference.models.tiny import write_tiny_embedder, write_tiny_model


def _edit_config(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("family", ["llama", "qwen2", "mistral", "gemma3_text"])
def test_facts_of_a_loaded_model(family: str, tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path, family)
    loaded = load_causal_lm(folder, "fp32", "cpu")
    num_layers = 3 if family == "gemma3_text" else 2
    assert (loaded.num_layers, loaded.num_kv_heads, loaded.head_dim) == (num_layers, 2, 16)
    assert loaded.kv_bytes_per_token == num_layers * 2 * 2 * 16 * 4
    assert loaded.max_context == 2048
    assert loaded.eos_ids == {2}
    assert loaded.vocab_size == loaded.model.get_input_embeddings().num_embeddings
    assert loaded.weight_bytes == sum(
        weight.nbytes for weight in load_file(folder / "model.safetensors").values()
    )
    assert not loaded.model.training
    assert not any(weight.requires_grad for weight in loaded.model.parameters())


def test_sliding_windows_are_known_per_layer(tmp_path: Path) -> None:
    gemma = load_causal_lm(write_tiny_model(tmp_path / "gemma", "gemma3_text"), "fp32", "cpu")
    mistral = load_causal_lm(
        write_tiny_model(tmp_path / "mistral", "mistral", sliding_window=64), "fp32", "cpu"
    )
    llama = load_causal_lm(write_tiny_model(tmp_path / "llama"), "fp32", "cpu")
    assert gemma.sliding_windows == (32, 32, None)
    assert mistral.sliding_windows == (64, 64)
    assert llama.sliding_windows == (None, None)


def test_ends_of_text_and_of_turn_both_count(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, 2]}))
    assert load_causal_lm(folder, "fp32", "cpu").eos_ids == {0, 2}


def test_context_ends_before_the_position_table_switches(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 8,
        "long_factor": [2.0] * 8,
        "original_max_position_embeddings": 512,
    }
    _edit_config(folder, rope_parameters=rope)
    assert load_causal_lm(folder, "fp32", "cpu").max_context == 512


def test_fingerprint_knows_content_and_precision_but_not_place(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "a", seed=0)
    copied = Path(shutil.copytree(folder, tmp_path / "b"))
    other = write_tiny_model(tmp_path / "c", seed=1)
    fingerprints = [load_causal_lm(path, "fp32", "cpu").fingerprint for path in (folder, copied, other)]
    assert fingerprints[0] == fingerprints[1]
    assert fingerprints[0] != fingerprints[2]
    assert load_causal_lm(folder, "bf16", "cpu").fingerprint != fingerprints[0]
    template = copied / "tokenizer_config.json"
    template.write_text(template.read_text().replace("assistant", "model"))
    assert load_causal_lm(copied, "fp32", "cpu").fingerprint != fingerprints[0]


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_weights_have_the_chosen_precision(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    loaded = load_causal_lm(write_tiny_model(tmp_path), name, "cpu")
    assert {weight.dtype for weight in loaded.model.parameters()} == {dtype}
    assert loaded.dtype == dtype


@pytest.mark.parametrize(
    ("description", "dtype"),
    [
        ("processor : 0\nflags : fpu avx2 avx512f avx512_bf16\n", torch.bfloat16),
        ("flags\t\t: fpu avx2 amx_bf16\n", torch.bfloat16),
        ("Features : fp asimd bf16\n", torch.bfloat16),
        ("flags : fpu avx2 avx512f\nbugs : bf16\n", torch.float32),
        (None, torch.float32),
    ],
)
def test_auto_takes_bf16_only_where_the_processor_computes_it(
    description: str | None, dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    if description is not None:
        cpuinfo.write_text(description)
    monkeypatch.setattr(precision, "CPU_DESCRIPTION", cpuinfo)
    assert precision.choose_dtype("auto", "cpu") == dtype


# One small config of each kind that the engine must refuse, and a word of the reason.
REFUSED = {
    "recurrent": ({"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 1}, "state"),
    "hybrid": ({"model_type": "qwen3_next"}, "linear_attention"),
    "multimodal": ({"model_type": "gemma3"}, "more than text"),
    "translator": ({"model_type": "t5"}, "no causal language models"),
    "encoder": ({"model_type": "vit"}, "no causal language models"),
    "compressed KV": ({"model_type": "deepseek_v3"}, "compressed"),
    "unknown": ({"model_type": "from-the-future"}, "from-the-future"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_model_that_cannot_be_served_exactly_is_refused(kind: str, tmp_path: Path) -> None:
    fields, reason = REFUSED[kind]
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(ModelNotUsable, match=reason) as raised:
        load_causal_lm(tmp_path, "fp32", "cpu")
    assert "\n" not in str(raised.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable, match="nowhere is not a folder"):
        load_causal_lm(tmp_path / "nowhere", "fp32", "cpu")


def test_missing_weights_are_refused_instead_of_made_up(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelNotUsable, match=r"1 weights are missing.*layers\.1\.mlp\.up_proj"):
        load_causal_lm(folder, "fp32", "cpu")


def test_weights_that_were_cut_short_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelNotUsable, match="not fully covered"):
        load_causal_lm(folder, "fp32", "cpu")


def test_an_accelerator_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelNotUsable, match="ENGINE_DEVICE=cuda"):
        load_causal_lm(write_tiny_model(tmp_path), "fp32", "cuda")


def test_pickled_weights_are_never_read(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelNotUsable):
        load_causal_lm(folder, "fp32", "cpu")


def test_code_of_a_model_folder_is_never_run(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    auto_map = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    _edit_config(folder, model_type="evil", auto_map=auto_map)
    with pytest.raises(ModelNotUsable):
        load_causal_lm(folder, "fp32", "cpu")


def test_sentence_encoder_is_no_chat_model(tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable):
        load_causal_lm(write_tiny_embedder(tmp_path), "fp32", "cpu")


def test_loaded_model_computes_what_transformers_loads(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path)
    ids = torch.tensor([[1, 50, 60, 70]])
    plain = AutoModelForCausalLM.from_pretrained(folder, config=AutoConfig.from_pretrained(folder)).eval()
    with torch.no_grad():
        assert torch.equal(load_causal_lm(folder, "fp32", "cpu").model(ids).logits, plain(ids).logits)
