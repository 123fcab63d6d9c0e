"""The small operations between the matrices: what each must compute, and the form in plain torch.

Every other form computes the same numbers within rounding: sums and softmax in fp32, results in the dtype of the
states. Knows tensors only, no layers and no weights' origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch.nn import functional

from inference.models.attention import RaggedBatch, Scoring, attend_group


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines of every token's position, (num_tokens, head_dim / 2) fp32."""

    cos: torch.Tensor
    sin: torch.Tensor

    @classmethod
    def of(cls, positions: torch.Tensor, frequencies: torch.Tensor, scale: float) -> Rotation:
        angles = positions[:, None] * frequencies
        return cls(angles.cos() * scale, angles.sin() * scale)


class Kernels(Protocol):
    """One form of the operations."""

    @property
    def name(self) -> str:
        """In a few words, for the log and the admin."""
        ...

    def norm(self, states: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """States (..., width) over their root mean square, times `weight`."""
        ...

    def add_norm(
        self, states: torch.Tensor, more: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Adds `more` to the states in place and norms them."""
        ...

    def norm_heads(
        self,
        projected: torch.Tensor,
        query_norm: torch.Tensor,
        key_norm: torch.Tensor,
        num_heads: int,
        eps: float,
    ) -> None:
        """Norms every head of the queries and of the keys on its own, in place (Qwen3); rows are those of `place`."""
        ...

    def gate(self, widened: torch.Tensor) -> torch.Tensor:
        """silu of the first half of each row, times the second half."""
        ...

    def place(
        self, projected: torch.Tensor, rotation: Rotation, batch: RaggedBatch, layer: int, num_heads: int
    ) -> torch.Tensor:
        """Turned queries (num_tokens, num_heads, head_dim); keys (turned) and values go to their slots.

        `projected` (num_tokens, heads * head_dim) holds queries, keys and values of each token one behind the other.
        """
        ...

    def attend(self, queries: torch.Tensor, batch: RaggedBatch, layer: int, scoring: Scoring) -> torch.Tensor:
        """Causal attention of all groups: (num_tokens, num_heads, head_dim) to (num_tokens, num_heads * head_dim)."""
        ...


class PlainKernels:
    """In plain torch: runs everywhere, on accelerators too."""

    name = "small operations in plain torch"

    def norm(self, states: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        wide = states.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
        return weight * wide.to(states.dtype)

    def add_norm(
        self, states: torch.Tensor, more: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> torch.Tensor:
        states += more
        return self.norm(states, weight, eps)

    def norm_heads(
        self,
        projected: torch.Tensor,
        query_norm: torch.Tensor,
        key_norm: torch.Tensor,
        num_heads: int,
        eps: float,
    ) -> None:
        heads = projected.view(len(projected), -1, len(query_norm))
        num_keys = (heads.shape[1] - num_heads) // 2
        for part, weight in (
            (heads[:, :num_heads], query_norm),
            (heads[:, num_heads : num_heads + num_keys], key_norm),
        ):
            part.copy_(self.norm(part, weight, eps))

    def gate(self, widened: torch.Tensor) -> torch.Tensor:
        gate, through = widened.chunk(2, -1)
        return functional.silu(gate) * through

    def place(
        self, projected: torch.Tensor, rotation: Rotation, batch: RaggedBatch, layer: int, num_heads: int
    ) -> torch.Tensor:
        shape = batch.tensors.shape
        heads = projected.view(len(projected), -1, shape.head_dim)
        queries, keys, values = heads.split((num_heads, shape.kv_heads, shape.kv_heads), 1)
        # A batch's places are head by head.
        batch.update(_turned(keys, rotation).transpose(0, 1)[None], values.transpose(0, 1)[None], layer)
        return _turned(queries, rotation)

    def attend(self, queries: torch.Tensor, batch: RaggedBatch, layer: int, scoring: Scoring) -> torch.Tensor:
        output = torch.empty_like(queries)
        for group in batch.groups:
            seen = attend_group(queries[group.tokens], batch.tensors, layer, group, scoring)
            output[group.tokens] = seen
        return output.flatten(1)


def _turned(heads: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    """(num_tokens, num_heads, head_dim), the first half of each head against the second."""
    one, other = heads.float().chunk(2, -1)
    cos, sin = rotation.cos[:, None], rotation.sin[:, None]
    return torch.cat((one * cos - other * sin, other * cos + one * sin), -1).to(heads.dtype)
