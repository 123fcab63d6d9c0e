from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from inference.models.convert_gguf import convert_gguf
from inference.models.errors import ModelNotUsable
from tests.inference.models.gguf_files import write_tiny_gguf

IDS = torch.tensor([[1, 270, 71, 2, 31, 300, 290, 120, 9, 44]])
TEXT = "<|im_start|>user\nYou are 你好 2024!<|im_end|>\n"


def _converted(file: Path, folder: Path) -> Path:
    folder.mkdir()
    convert_gguf(file, folder)
    return folder


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_converted_model_computes_what_its_source_computes(family: str, tmp_path: Path) -> None:
    file, source = write_tiny_gguf(tmp_path, family)
    folder = _converted(file, tmp_path / "out")
    converted = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        for weight in source.parameters():
            weight.copy_(weight.bfloat16())
        assert torch.equal(converted(IDS).logits, source(IDS).logits)


@pytest.mark.parametrize("packing", [GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_1])
def test_packed_weights_are_what_transformers_reads(packing: GGMLQuantizationType, tmp_path: Path) -> None:
    file, source = write_tiny_gguf(tmp_path, packing=packing)
    weights = load_file(_converted(file, tmp_path / "out") / "model.safetensors")
    expected = load_gguf_checkpoint(
        file, return_tensors=True, model_to_load=source, torch_dtype=torch.bfloat16
    )
    assert set(weights) == set(expected["tensors"]) == {name for name, _ in source.named_parameters()}
    assert all(torch.equal(weights[name], tensor) for name, tensor in expected["tensors"].items())


def test_tokenizer_and_template_are_those_of_the_file(tmp_path: Path) -> None:
    file, _ = write_tiny_gguf(tmp_path)
    folder = _converted(file, tmp_path / "out")
    source = Tokenizer.from_file(str(tmp_path / "source" / "tokenizer.json"))
    converted = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert converted.encode(TEXT).ids == source.encode(TEXT).ids
    assert converted.decode(converted.encode(TEXT).ids, skip_special_tokens=False) == TEXT
    fast = AutoTokenizer.from_pretrained(folder)
    messages = [{"role": "user", "content": "You are 你好 2024!"}]
    assert fast.apply_chat_template(messages, tokenize=False) == TEXT
    assert fast.eos_token_id == 2
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == 2


def test_unknown_architecture_is_refused_by_name(tmp_path: Path) -> None:
    file, _ = write_tiny_gguf(tmp_path, architecture="mamba")
    with pytest.raises(ModelNotUsable, match="'mamba' is not converted"):
        _converted(file, tmp_path / "out")


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"nothing of the kind")
    with pytest.raises(ModelNotUsable, match="not a readable GGUF"):
        _converted(tmp_path / "broken.gguf", tmp_path / "out")
