from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from inference.models.tiny import byte_level_tokenizer, main, write_tiny_model

# With their fewest different tokens among 24: a head tied to scaled embeddings repeats itself more than others.
FAMILIES = {"llama": 8, "qwen2": 8, "qwen3": 8, "mistral": 8, "gemma2": 5, "gemma3_text": 8}


@pytest.mark.parametrize(("family", "num_different"), FAMILIES.items())
def test_tiny_model_answers_with_varied_tokens(family: str, num_different: int, tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(write_tiny_model(tmp_path, family)).eval()
    prompt = torch.tensor([[1, 40, 270, 99]])
    answer = model.generate(prompt, max_new_tokens=24, do_sample=False)[0, 4:]
    assert len(set(answer.tolist())) >= num_different


def test_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    folders = [write_tiny_model(tmp_path / name, seed=seed) for name, seed in (("a", 3), ("b", 3), ("c", 4))]
    first, same, other = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert first == same
    assert first != other


def test_attention_biases_are_not_zero(tmp_path: Path) -> None:
    weights = load_file(write_tiny_model(tmp_path, "qwen2") / "model.safetensors")
    assert weights["model.layers.0.self_attn.q_proj.bias"].abs().max() > 0


def test_shape_can_be_overridden_and_unknown_family_is_refused(tmp_path: Path) -> None:
    weights = load_file(write_tiny_model(tmp_path, num_hidden_layers=3) / "model.safetensors")
    assert "model.layers.2.mlp.up_proj.weight" in weights
    with pytest.raises(ValueError, match="unknown tiny family 'nothing'"):
        write_tiny_model(tmp_path, "nothing")


def test_the_command_writes_a_model_and_says_what_it_wants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "qwen"), "qwen2"]) == 0
    assert (tmp_path / "qwen" / "model.safetensors").is_file()
    for wrong in ([], [str(tmp_path), "nothing"]):
        with pytest.raises(SystemExit):
            main(wrong)
        assert "usage: python -m inference.models.tiny" in capsys.readouterr().err


@given(st.text())
def test_any_text_survives_encode_and_decode(text: str) -> None:
    tokenizer = byte_level_tokenizer()
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_chinese_characters_span_tokens_and_markers_are_one() -> None:
    tokenizer = byte_level_tokenizer()
    assert [len(tokenizer.encode(text).ids) for text in ("你", "好", "<|im_end|>", " the")] == [2, 3, 1, 1]
