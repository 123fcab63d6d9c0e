"""A GGUF file turned into an ordinary model folder: bf16 safetensors, config, tokenizer, chat template.

Knows the GGUF names and layouts of the dense Llama-like families and of byte-level BPE tokenizers.
Reading takes seconds and needs no other package than `gguf`; the result equals what transformers' own GGUF
loader computes (which takes several times longer and needs accelerate). Everything else is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.models import store
from inference.models.errors import ModelNotUsable
from inference.models.gguf_tokenizer import tokenizer_from_gguf

if TYPE_CHECKING:
    import torch
    from gguf import GGUFReader, ReaderTensor

_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True, slots=True)
class Family:
    """How one GGUF architecture maps to a transformers class."""

    model_class: str
    has_permuted_rope: bool  # q and k rows are interleaved in the file and split in halves in transformers


_FAMILIES = {
    "llama": Family("LlamaForCausalLM", has_permuted_rope=True),
    "qwen2": Family("Qwen2ForCausalLM", has_permuted_rope=False),
    "qwen3": Family("Qwen3ForCausalLM", has_permuted_rope=False),
}


def convert_gguf(source: Path, folder: Path) -> None:
    """Writes the model of `source` into the existing empty `folder`; needs about 2 bytes per parameter of disk."""
    from gguf import GGUFReader

    try:
        reader = GGUFReader(source)
    except (ValueError, IndexError) as error:
        raise ModelNotUsable(f"{source} is not a readable GGUF file: {error}") from None
    # Two bytes a weight, and room for the tokenizer.
    num_weights = sum(int(tensor.n_elements) for tensor in reader.tensors)
    store.require_space(folder, 2 * num_weights + 20_000_000)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    family = _family(source, fields)
    config = _config(reader, fields, family)
    _write_weights(reader, family, config, folder)
    _write_json(folder / "config.json", config)
    eos = config["eos_token_id"]
    _write_json(
        folder / "generation_config.json", {"eos_token_id": eos, "bos_token_id": config["bos_token_id"]}
    )
    tokenizer_from_gguf(source, fields).save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(fields, config))


def _family(source: Path, fields: dict[str, Any]) -> Family:
    architecture = fields.get("general.architecture")
    if architecture not in _FAMILIES:
        known = ", ".join(_FAMILIES)
        raise ModelNotUsable(
            f"{source}: GGUF architecture {architecture!r} is not converted (only {known}); use a safetensors folder"
        )
    scaling = fields.get(f"{architecture}.rope.scaling.type", "none")
    if scaling != "none" or f"{architecture}.expert_count" in fields:
        raise ModelNotUsable(
            f"{source}: scaled positions and experts are not converted from GGUF; use a safetensors folder"
        )
    return _FAMILIES[architecture]


def _config(reader: GGUFReader, fields: dict[str, Any], family: Family) -> dict[str, Any]:
    architecture = fields["general.architecture"]

    def value(name: str, default: Any = None) -> Any:
        return fields.get(f"{architecture}.{name}", default)

    num_heads = value("attention.head_count")
    names = {tensor.name for tensor in reader.tensors}
    return {
        "architectures": [family.model_class],
        "model_type": architecture,
        "_name_or_path": fields.get("general.name", ""),
        "dtype": "bfloat16",
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "hidden_size": value("embedding_length"),
        "intermediate_size": value("feed_forward_length"),
        "num_hidden_layers": value("block_count"),
        "num_attention_heads": num_heads,
        "num_key_value_heads": value("attention.head_count_kv", num_heads),
        "head_dim": value("attention.key_length", value("embedding_length") // num_heads),
        "max_position_embeddings": value("context_length"),
        "rms_norm_eps": value("attention.layer_norm_rms_epsilon"),
        "rope_parameters": {"rope_type": "default", "rope_theta": value("rope.freq_base", 10000.0)},
        "tie_word_embeddings": "output.weight" not in names,
        "bos_token_id": fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": fields.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": fields.get("tokenizer.ggml.padding_token_id"),
    }


def _write_weights(reader: GGUFReader, family: Family, config: dict[str, Any], folder: Path) -> None:
    from safetensors.torch import save_file

    weights = {}
    for tensor in reader.tensors:
        name = _transformers_name(tensor.name)
        weights[name] = _dequantised(tensor, family, config)
    # transformers refuses files without this note about who wrote them.
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _transformers_name(name: str) -> str:
    if name in _TOP_NAMES:
        return _TOP_NAMES[name]
    parts = name.split(".")
    if len(parts) != 4 or parts[0] != "blk" or parts[2] not in _LAYER_NAMES:
        raise ModelNotUsable(f"the GGUF tensor {name} is unknown; use the model's safetensors folder")
    _, layer, part, kind = parts
    return f"model.layers.{layer}.{_LAYER_NAMES[part]}.{kind}"


def _dequantised(tensor: ReaderTensor, family: Family, config: dict[str, Any]) -> torch.Tensor:
    import torch
    from gguf import dequantize

    # A copy: for float tensors gguf hands out a read-only view of the mapped file.
    rows = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
    if family.has_permuted_rope and ".attn_q." in tensor.name:
        rows = _split_halves(rows, config["num_attention_heads"])
    if family.has_permuted_rope and ".attn_k." in tensor.name:
        rows = _split_halves(rows, config["num_key_value_heads"])
    return rows.to(torch.bfloat16).contiguous()


def _split_halves(rows: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Undoes the row order of llama.cpp: pairs (0, 1), (2, 3) ... become (0, d/2), (1, d/2 + 1) ..."""
    pairs = rows.reshape(num_heads, -1, 2, *rows.shape[1:])
    return pairs.transpose(1, 2).reshape(rows.shape)


def _tokenizer_config(fields: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    tokens = fields["tokenizer.ggml.tokens"]
    result: dict[str, Any] = {
        "tokenizer_class": "TokenizersBackend",
        "model_max_length": config["max_position_embeddings"],
        "clean_up_tokenization_spaces": False,
    }
    for role, id_field in (
        ("bos_token", "bos"),
        ("eos_token", "eos"),
        ("unk_token", "unknown"),
        ("pad_token", "padding"),
    ):
        token_id = fields.get(f"tokenizer.ggml.{id_field}_token_id")
        if token_id is not None:
            result[role] = tokens[token_id]
    if "tokenizer.chat_template" in fields:
        result["chat_template"] = fields["tokenizer.chat_template"]
    return result


def _write_json(path: Path, fields: dict[str, Any]) -> None:
    path.write_text(json.dumps(fields, ensure_ascii=False, indent=2), encoding="utf-8")
