"""What a folder says of a Llama-shaped model, read without transformers where its config says everything itself.

transformers needs 1.3 s of processor time to read a small JSON file, most of it for importing itself. This reads those
of four families, and only where no default, old spelling or special case of that library would count; `None` sends
the caller there, and so does whatever the engine might have to refuse. Attributes have transformers' names.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")

_NEEDED = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings", "eos_token_id",
)  # fmt: skip
# Fields that change nothing here: what they say is not asked, or said by the weights.
_WITHOUT_EFFECT = {
    "_name_or_path", "architectures", "attention_dropout", "bos_token_id", "dtype", "initializer_range",
    "max_window_layers", "model_type", "pad_token_id", "pretraining_tp", "torch_dtype", "transformers_version",
    "use_cache",
}  # fmt: skip
# Fields that must say this where they are there.
_ONLY: dict[str, Any] = {"hidden_act": "silu", "use_sliding_window": False, "rope_scaling": None}
_UNDERSTOOD = {
    "head_dim", "rope_theta", "rope_parameters", "attention_bias", "mlp_bias", "sliding_window", "layer_types",
}  # fmt: skip


def read_plain_config(folder: Path) -> SimpleNamespace | None:
    """None where transformers has to say what the config means. Never raises for what it says."""
    try:
        fields = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(fields, dict) or fields.get("model_type") not in FAMILIES or not _is_plain(fields):
        return None
    family = fields["model_type"]
    # Qwen's tells how wide windows would be if there were any; Llama has none, and a Mistral must say it.
    window = fields.get("sliding_window") if family == "mistral" else None
    rope = fields.get("rope_parameters") or {"rope_type": "default", "rope_theta": fields.get("rope_theta")}
    return SimpleNamespace(
        **{
            "model_type": family,
            "hidden_act": "silu",
            "layer_types": None if window is not None else ["full_attention"] * fields["num_hidden_layers"],
            "attention_bias": family != "mistral" and fields.get("attention_bias", False),
            "mlp_bias": family == "llama" and fields.get("mlp_bias", False),
            "sliding_window": window,
            "rope_parameters": rope,
            # Qwen3's heads are 128 wide where it does not say so.
            "head_dim": fields.get("head_dim")
            or (128 if family == "qwen3" else fields["hidden_size"] // fields["num_attention_heads"]),
        },
        **{name: fields[name] for name in _NEEDED},
    )


def head_dim(config: Any) -> int:
    """How wide a head is. `config`: such a one or one of transformers, of any family."""
    width: int = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return width


def generation_eos(folder: Path) -> int | list[int] | None:
    """What ends an answer by the folder's defaults of generation, None where it has none that can be read."""
    try:
        fields = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    ends: int | list[int] | None = fields.get("eos_token_id") if isinstance(fields, dict) else None
    return ends


def _is_plain(fields: dict[str, Any]) -> bool:
    known = _WITHOUT_EFFECT | _UNDERSTOOD | set(_ONLY) | set(_NEEDED)
    rope = fields.get("rope_parameters") or {"rope_theta": fields.get("rope_theta"), "rope_type": "default"}
    has_window = fields["model_type"] == "mistral"
    return (
        known.issuperset(fields)
        and all(fields.get(name) is not None for name in _NEEDED)
        and all(fields.get(name, value) == value for name, value in _ONLY.items())
        and ("sliding_window" in fields) >= has_window
        and (has_window or fields["model_type"] != "llama" or fields.get("sliding_window") is None)
        and set(fields.get("layer_types") or ()) <= (set() if has_window else {"full_attention"})
        and set(rope) == {"rope_theta", "rope_type"}
        and rope["rope_type"] == "default"
        and rope["rope_theta"] is not None
        and isinstance(fields["num_hidden_layers"], int)
    )
