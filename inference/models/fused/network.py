"""The forward of a Llama-shaped model: per layer four matrices, one look into the blocks, and three small operations.

Knows the order of a layer. Does not know families (`recognise`), how a matrix is multiplied (`linears`) nor how the
small operations are computed (`kernels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from inference.models.attention import RaggedBatch, Scoring
from inference.models.fused.kernels import Kernels, Rotation
from inference.models.fused.linears import Linear


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer. Norm weights are (width,), those of heads (head_dim,)."""

    norm: torch.Tensor
    project: Linear  # to queries, keys and values, one behind the other
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    mix: Linear
    mlp_norm: torch.Tensor
    widen: Linear  # to the gate and what it lets through, one behind the other
    narrow: Linear
    scoring: Scoring


@dataclass(frozen=True, slots=True)
class Weights:
    """All of a model. `frequencies` (head_dim / 2,) fp32 turn queries and keys by position, times `rotary_scale`."""

    embedding: torch.Tensor  # (vocabulary, width), in the dtype of its file where it lies there
    layers: Sequence[Layer]
    norm: torch.Tensor
    head: Linear
    frequencies: torch.Tensor
    rotary_scale: float
    num_heads: int
    eps: float


class FusedNetwork:
    """A `Network` over such weights."""

    def __init__(self, weights: Weights, kernels: Kernels, linears: str) -> None:
        """`linears` says in a few words how matrices are multiplied."""
        self._weights = weights
        self._kernels = kernels
        self._linears = linears

    @property
    def description(self) -> str:
        return f"fused layers, {self._kernels.name}, {self._linears}"

    def __call__(
        self, token_ids: torch.Tensor, positions: torch.Tensor, batch: RaggedBatch, rows: torch.Tensor
    ) -> torch.Tensor:
        weights, kernels = self._weights, self._kernels
        rotation = Rotation.of(positions, weights.frequencies, weights.rotary_scale)
        states = weights.embedding[token_ids].to(weights.norm.dtype)
        normed = kernels.norm(states, weights.layers[0].norm, weights.eps)
        next_norms = [*(layer.norm for layer in weights.layers[1:]), weights.norm]
        for number, (layer, next_norm) in enumerate(zip(weights.layers, next_norms, strict=True)):
            projected = layer.project(normed)
            if layer.query_norm is not None and layer.key_norm is not None:
                kernels.norm_heads(
                    projected, layer.query_norm, layer.key_norm, weights.num_heads, weights.eps
                )
            queries = kernels.place(projected, rotation, batch, number, weights.num_heads)
            attended = kernels.attend(queries, batch, number, layer.scoring)
            if number == len(weights.layers) - 1:  # nobody looks at the other rows any more
                attended, states = attended[rows], states[rows]
            normed = kernels.add_norm(states, layer.mix(attended), layer.mlp_norm, weights.eps)
            hidden = kernels.gate(layer.widen(normed))
            normed = kernels.add_norm(states, layer.narrow(hidden), next_norm, weights.eps)
        return weights.head(normed).float()
