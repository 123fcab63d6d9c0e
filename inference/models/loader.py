"""A model folder in memory, with the facts that the engine needs to size its KV pool and to end answers.

Knows transformers' loading and which kinds of models the engine cannot serve. Does not know how a model is found
(`resolve`) nor how it is run. Code from model folders is never executed; weights are safetensors only.

Measured with SmolLM2-135M on one thread of a two-core machine without native bf16 (AVX2), busy neighbours: a
decode step at context 128 takes 84 ms in fp32 and 58 ms in bf16 at batch 1, but 162 and 395 ms at batch 8. An
engine that batches is better off with fp32 there, so `auto` asks the processor. A cold start is 2.2 s for torch,
2.5 s for what transformers imports around a model, and 0.5 s for the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError

from inference.models import attention
from inference.models.errors import ModelNotUsable
from inference.models.fingerprint import fingerprint
from inference.models.fused.choice import KernelsFor, plain_kernels
from inference.models.fused.int8 import int8_form
from inference.models.fused.linears import best_form
from inference.models.fused.recognise import Making, fuse, is_llama_shaped
from inference.models.network import Network, TransformersNetwork
from inference.models.plain_config import generation_eos, head_dim, read_plain_config
from inference.models.precision import choose_device, choose_dtype, dtype_name

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

_ATTENTION_LAYERS = {"full_attention", "sliding_attention"}
# These change their position tables once a prompt grows past a limit; below the limit they never do.
_SWITCHING_ROPE = {"dynamic", "longrope"}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A causal LM without gradients, and what its config says about its KV.

    `network` is what the engine runs. `model` is None where that has its own weights.
    """

    model: PreTrainedModel | None
    network: Network
    folder: Path
    dtype: torch.dtype
    precision: str  # of weights and KV, as people are told
    device: str
    fingerprint: str  # of weights, tokenizer, template and precision
    num_layers: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_context: int  # tokens
    eos_ids: frozenset[int]
    sliding_windows: tuple[int | None, ...]  # per layer, in tokens; None sees everything
    weight_bytes: int  # memory of the weights as loaded; tied ones count once

    @property
    def kv_bytes_per_token(self) -> int:
        """K and V of one token over all layers; grouped KV heads count, not attention heads."""
        return self.num_layers * 2 * self.num_kv_heads * self.head_dim * self.dtype.itemsize


def load_served(
    folder: Path,
    dtype: str = "auto",
    device: str = "auto",
    layers: str = "auto",
    weights: str = "same",
    kernels: KernelsFor = plain_kernels,
) -> LoadedModel:
    """The model of `folder` with the network that the engine runs over paged KV. Raises ModelNotUsable.

    Llama-shaped ones get our layers, unless `layers` is transformers: all others, and folders with any irregularity,
    go through that library, which says what is wrong with them. `weights`: same as the rest, int8 or w8a8 (`int8`).
    `kernels` gives the small operations that fit a dtype on a device.
    """
    device = choose_device(device)
    if layers != "transformers":
        loaded = _load_fused(folder, choose_dtype(dtype, device), device, weights, kernels)
        if loaded is not None:
            return loaded
    attention.register()
    loaded = load_causal_lm(folder, dtype, device, attention.ATTENTION_NAME)
    if weights != "same":
        raise ModelNotUsable(f"ENGINE_WEIGHTS={weights} needs the fused layers, which {folder} does not get")
    return loaded


def load_causal_lm(
    folder: Path, dtype: str = "auto", device: str = "auto", attn_implementation: str = "sdpa"
) -> LoadedModel:
    """The model of `folder`, refused with one clear line where the engine cannot serve it exactly.

    `attn_implementation` is a name that transformers knows or that was registered before.
    """
    device = choose_device(device)
    torch_dtype = choose_dtype(dtype, device)
    config = read_config(folder)
    _refuse_unservable(folder, config)
    model: Any = _load(folder, torch_dtype, attn_implementation)
    model.to(device)
    return LoadedModel(
        model=model,
        network=TransformersNetwork(model),
        folder=folder,
        dtype=torch_dtype,
        precision=dtype_name(torch_dtype),
        device=device,
        fingerprint=fingerprint(folder, dtype_name(torch_dtype)),
        eos_ids=_eos_ids(model.config.eos_token_id, model.generation_config.eos_token_id),
        weight_bytes=sum(weight.numel() * weight.element_size() for weight in model.parameters()),
        **_facts(config),
    )


def _load_fused(
    folder: Path, dtype: torch.dtype, device: str, weights: str, kernels: KernelsFor
) -> LoadedModel | None:
    """None where transformers has to load the model, or to say what is wrong with it."""
    config: Any = read_plain_config(folder)
    if config is None:
        config = read_config(folder)
        _refuse_unservable(folder, config)
    if not is_llama_shaped(config):
        return None
    form = best_form(dtype, device) if weights == "same" else int8_form(weights, dtype, device)
    facts = _facts(config)
    making = Making(dtype, device, form, kernels(dtype, device))
    fused = fuse(folder, config, facts["sliding_windows"], making)
    if fused is None:
        return None
    # KV of another precision never matches, on disk neither.
    precision = (dtype_name(dtype), *((form.description,) if weights != "same" else ()))
    return LoadedModel(
        model=None,
        network=fused.network,
        folder=folder,
        dtype=dtype,
        precision=", ".join(precision),
        device=device,
        fingerprint=fingerprint(folder, *precision),
        eos_ids=_eos_ids(config.eos_token_id, generation_eos(folder)),
        weight_bytes=fused.weight_bytes,
        **facts,
    )


def _facts(config: Any) -> dict[str, Any]:
    """What a config says of the KV, as `LoadedModel` names it."""
    return {
        "num_layers": config.num_hidden_layers,
        "num_kv_heads": getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
        "head_dim": head_dim(config),
        "vocab_size": config.vocab_size,
        "max_context": _max_context(config),
        "sliding_windows": _sliding_windows(config),
    }


def read_config(folder: Path) -> PreTrainedConfig:
    """What the folder says of its model. Raises ModelNotUsable with one line."""
    from transformers import AutoConfig

    if not folder.is_dir():  # transformers would take it for a hub id and complain of its spelling
        raise ModelNotUsable(f"{folder} is not a folder")
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError) as error:
        raise ModelNotUsable(f"{folder}: {first_line(error)}") from error
    return config


def _refuse_unservable(folder: Path, config: PreTrainedConfig) -> None:
    """Raises ModelNotUsable for every kind whose state is not a plain list of K and V per token."""
    reason = _reason_against(config)
    if reason is not None:
        raise ModelNotUsable(
            f"{folder}: {config.model_type} models {reason}; serve a text-only attention model"
        )


def _reason_against(config: PreTrainedConfig) -> str | None:
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    if config.get_text_config() is not config:
        return "read more than text"
    if config.is_encoder_decoder or type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        return "are no causal language models"
    other_layers = set(getattr(config, "layer_types", None) or ()) - _ATTENTION_LAYERS
    model_class = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    if other_layers or getattr(model_class, "_is_stateful", False):
        return f"keep a state that is not made of blocks ({', '.join(sorted(other_layers)) or 'recurrent'})"
    if getattr(config, "kv_lora_rank", None) or getattr(config, "num_kv_shared_layers", 0):
        return "keep compressed or shared KV"
    if not getattr(model_class, "_supports_attention_backend", False):
        return "do not go through the attention interface"
    return None


def _load(folder: Path, dtype: torch.dtype, attn_implementation: str) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    model: Any
    report: dict[str, Any]
    load: Any = AutoModelForCausalLM.from_pretrained  # what it returns depends on an argument
    try:
        model, report = load(
            folder,
            dtype=dtype,
            attn_implementation=attn_implementation,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelNotUsable(f"{folder}: {first_line(error)}") from error
    refuse_incomplete(folder, report)
    ready: PreTrainedModel = model.eval().requires_grad_(False)
    return ready


def refuse_incomplete(folder: Path, report: dict[str, Any], optional_prefix: str | None = None) -> None:
    """Raises ModelNotUsable when weights were missing: transformers would fill them with random numbers."""
    missing = sorted(report["missing_keys"])
    if optional_prefix is not None:
        missing = [name for name in missing if not name.startswith(optional_prefix)]
    if missing:
        raise ModelNotUsable(f"{folder}: {len(missing)} weights are missing, the first is {missing[0]}")


def _max_context(config: PreTrainedConfig) -> int:
    limits: list[int] = [config.max_position_embeddings]
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") in _SWITCHING_ROPE and rope.get("original_max_position_embeddings"):
        limits.append(rope["original_max_position_embeddings"])
    return min(limits)


def _eos_ids(*values: int | Sequence[int] | None) -> frozenset[int]:
    """Both places count: some models name the end of a turn in one and the end of a text in the other."""
    ids: set[int] = set()
    for value in values:
        ids |= {value} if isinstance(value, int) else set(value or ())
    return frozenset(ids)


def _sliding_windows(config: PreTrainedConfig) -> tuple[int | None, ...]:
    window = getattr(config, "sliding_window", None)
    if getattr(config, "use_sliding_window", True) is False:
        window = None
    layer_types = getattr(config, "layer_types", None) or ["sliding_attention"] * config.num_hidden_layers
    return tuple(window if kind == "sliding_attention" else None for kind in layer_types)


def first_line(error: Exception) -> str:
    """What a foreign error says, short enough for a log line."""
    return str(error).strip().partition("\n")[0]
