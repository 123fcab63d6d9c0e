"""Which models have Llama's shape, and their weights as the fused layers want them.

Knows the names of modules in transformers' families. Does not know how anything is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from inference.models.attention import Scoring
from inference.models.fused.kernels import Kernels
from inference.models.fused.linears import Linear, Pack, plain
from inference.models.fused.network import FusedNetwork, Layer, Weights

# Their layers are the same but for biases, norms of heads and windows, which are seen in the modules.
FAMILIES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


def is_llama_shaped(model: Any) -> bool:
    """Whether `fuse` can take this model of transformers."""
    family = type(model)
    is_ours = family.__name__ in FAMILIES and family.__module__.startswith("transformers.models.")
    return is_ours and model.config.hidden_act == "silu"


def fuse(model: Any, windows: Sequence[int | None], kernels: Kernels) -> FusedNetwork:
    """A network with the model's weights; layer by layer, how many tokens are seen (None: all).

    The model itself has no layers any more and must not be run.
    """
    config = model.config
    weights = Weights(
        embedding=model.model.embed_tokens.weight,
        layers=[
            _layer(layer, window, plain) for layer, window in zip(model.model.layers, windows, strict=True)
        ],
        norm=model.model.norm.weight,
        head=plain(model.lm_head.weight, model.lm_head.bias),
        frequencies=model.model.rotary_emb.inv_freq.float(),
        rotary_scale=float(model.model.rotary_emb.attention_scaling),
        num_heads=config.num_attention_heads,
        eps=config.rms_norm_eps,
    )
    model.model.layers = torch.nn.ModuleList()
    return FusedNetwork(weights, kernels, "matrices as torch multiplies them")


def _layer(layer: Any, window: int | None, pack: Pack) -> Layer:
    attention, mlp = layer.self_attn, layer.mlp
    return Layer(
        norm=layer.input_layernorm.weight,
        project=_joined(pack, attention.q_proj, attention.k_proj, attention.v_proj),
        query_norm=_weight_of(attention, "q_norm"),
        key_norm=_weight_of(attention, "k_norm"),
        mix=_joined(pack, attention.o_proj),
        mlp_norm=layer.post_attention_layernorm.weight,
        widen=_joined(pack, mlp.gate_proj, mlp.up_proj),
        narrow=_joined(pack, mlp.down_proj),
        scoring=Scoring(float(attention.scaling), window),
    )


def _joined(pack: Pack, *modules: Any) -> Linear:
    """One matrix of several that are multiplied with the same states."""
    biases = [module.bias for module in modules]
    bias = None if biases[0] is None else torch.cat(biases)
    return pack(torch.cat([module.weight for module in modules]), bias)


def _weight_of(module: Any, name: str) -> torch.Tensor | None:
    part = getattr(module, name, None)
    return None if part is None else part.weight
