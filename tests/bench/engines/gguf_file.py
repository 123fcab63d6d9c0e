"""A model folder's weights as a GGUF file, for llama.cpp: the way back of `inference.models.convert_gguf`.

Knows the names and layouts of Llama-shaped models. The file's tokenizer is good for reading ids only: prompts reach the
server as ids.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from inference.front.model_folder import read_json

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
HEADS = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}


def written_gguf(folder: Path, kind: str, kept: Path) -> Path:
    """The file, made unless it is there; `kind` (BF16, Q8_0) is what matrices become, all else stays fp32."""
    file = kept / f"{folder.name}-{kind}.gguf"
    if not file.is_file():
        kept.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(".part")
        _write(folder, kind, half)
        os.replace(half, file)
    return file


def _write(folder: Path, kind: str, file: Path) -> None:
    import gguf

    config = read_json(folder / "config.json")
    writer = gguf.GGUFWriter(file, "llama")
    _write_shape(writer, config, folder.name)
    _write_tokens(writer, json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")), config)
    matrix_type = gguf.GGMLQuantizationType[kind]
    for name, weight in _weights(folder, config):
        wanted = matrix_type if weight.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(weight, wanted), raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_shape(writer: Any, config: dict[str, Any], name: str) -> None:
    num_heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // num_heads
    writer.add_name(name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(num_heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])


def _write_tokens(writer: Any, tokenizer: dict[str, Any], config: dict[str, Any]) -> None:
    from gguf import TokenType

    tokens = {token: text for text, token in tokenizer["model"]["vocab"].items()}
    control = {token["id"]: token["content"] for token in tokenizer["added_tokens"] if token["special"]}
    tokens |= control
    merges = tokenizer["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([tokens.get(token, f"<unused {token}>") for token in range(config["vocab_size"])])
    writer.add_token_types(
        [TokenType.CONTROL if token in control else TokenType.NORMAL for token in range(config["vocab_size"])]
    )
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)


def _weights(folder: Path, config: dict[str, Any]) -> Any:
    """(name, fp32 array) of every weight; of q and k the halves of each head become neighbours, as llama.cpp turns
    them."""
    from safetensors import safe_open

    for part in sorted(folder.glob("*.safetensors")):
        with safe_open(part, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - not a dict
                weight = tensors.get_tensor(name).float().numpy()
                new = _name(name.removesuffix(".weight"))
                if short := next((head for head in HEADS if new.endswith(head)), ""):
                    rows = config[HEADS[short]]
                    weight = weight.reshape(rows, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
                yield f"{new}.weight", weight


def _name(name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{NAMES[rest]}"
