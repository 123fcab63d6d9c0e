"""Writes tiny GGUF files the way llama.cpp's converter lays them out, as input for ours."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from gguf import GGMLQuantizationType, GGUFWriter, quantize
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, PreTrainedModel

from inference.models.convert_gguf import _LAYER_NAMES, _TOP_NAMES
from inference.models.tiny import CHATML_TEMPLATE, write_tiny_model

FLOAT = GGMLQuantizationType.F32
NORMAL, CONTROL = 1, 3


def write_tiny_gguf(
    folder: Path,
    family: str = "llama",
    packing: GGMLQuantizationType = FLOAT,
    architecture: str | None = None,
) -> tuple[Path, PreTrainedModel]:
    """A GGUF file and the model that it was made from."""
    source = write_tiny_model(folder / "source", family=family)
    model = AutoModelForCausalLM.from_pretrained(source).eval()
    file = folder / "tiny.gguf"
    writer = GGUFWriter(file, architecture or family)
    _add_config(writer, model)
    _add_tokenizer(writer, Tokenizer.from_file(str(source / "tokenizer.json")))
    for name, weight in model.named_parameters():
        rows = _paired_rows(name, weight.detach(), model) if family == "llama" else weight.detach()
        kind = packing if rows.ndim == 2 else FLOAT
        writer.add_tensor(_gguf_name(name), quantize(rows.numpy(), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file, model


def _add_config(writer: GGUFWriter, model: PreTrainedModel) -> None:
    config = model.config
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])


def _add_tokenizer(writer: GGUFWriter, tokenizer: Tokenizer) -> None:
    vocab = tokenizer.get_vocab(with_added_tokens=True)
    tokens = sorted(vocab, key=vocab.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL if token.startswith("<|") else NORMAL for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in _merges(tokenizer)])
    writer.add_bos_token_id(vocab["<|im_start|>"])
    writer.add_eos_token_id(vocab["<|im_end|>"])
    writer.add_chat_template(CHATML_TEMPLATE)


def _merges(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def _paired_rows(name: str, weight: torch.Tensor, model: PreTrainedModel) -> torch.Tensor:
    """llama.cpp keeps the two rows that are rotated together next to each other."""
    heads = {"q_proj": model.config.num_attention_heads, "k_proj": model.config.num_key_value_heads}
    for part, num_heads in heads.items():
        if part in name:
            halves = weight.reshape(num_heads, 2, -1, weight.shape[-1])
            return halves.swapaxes(1, 2).reshape(weight.shape).contiguous()
    return weight


def _gguf_name(name: str) -> str:
    for gguf, transformers in _TOP_NAMES.items():
        if name == transformers:
            return gguf
    _, _, layer, rest = name.split(".", 3)
    part, kind = rest.rsplit(".", 1)
    gguf_part = next(gguf for gguf, transformers in _LAYER_NAMES.items() if transformers == part)
    return f"blk.{layer}.{gguf_part}.{kind}"
