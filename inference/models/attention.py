"""Attention over paged KV for any model that dispatches through transformers' attention interface.

The one place that knows that interface: a cache object whose `update` writes keys and values into blocks, and an
attention function that reads them back. The batch is ragged: sequences lie one behind the other in a single
row of tokens, and `RaggedBatch` says which are whose. Causality and sliding windows are applied here, because
transformers makes no mask for an implementation it does not know; a call without our metadata raises.
Knows nothing about scheduling or about who owns which block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional

from inference.models.kv_tensors import KvShape, KvTensors

ATTENTION_NAME = "rill_ragged"


class AttentionNotUsable(RuntimeError):
    """The model called our attention in a way that would give wrong numbers."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """How a layer scores keys: times `scale`, the last `window` tokens (None: all), capped softly (None: not)."""

    scale: float
    window: int | None = None
    softcap: float | None = None


@dataclass(slots=True)
class Group:
    """Sequences that are attended to in one call.

    Tokens `start : start + num_rows * num_queries` of the batch; `rows` (num_rows, num_blocks) int64 are those of
    `KvTensors.rows_of` for the blocks of each sequence, padded with its first one; `positions` (num_rows, num_queries)
    are those of the queries, and the last of each row says how far its blocks are looked at.
    """

    start: int
    num_rows: int
    num_queries: int
    rows: torch.Tensor
    positions: torch.Tensor
    masks: dict[int | None, torch.Tensor] = field(default_factory=dict)
    _gather: torch.Tensor | None = None

    @property
    def tokens(self) -> slice:
        """Which tokens of the batch are this group's."""
        return slice(self.start, self.start + self.num_rows * self.num_queries)

    def gather(self, shape: KvShape) -> torch.Tensor:
        """(num_rows * kv_heads * num_blocks,): the rows of all heads of each sequence. Made once, not per layer."""
        if self._gather is None:
            heads = torch.arange(shape.kv_heads, device=self.rows.device)
            self._gather = (self.rows[:, None] + heads[:, None]).reshape(-1)
        return self._gather

    def mask(self, window: int | None, length: int) -> torch.Tensor:
        """(num_rows, num_queries, length), True where a query may look. Made once per window, not per layer."""
        if window not in self.masks:
            keys = torch.arange(length, device=self.positions.device)
            queries = self.positions[..., None]
            allowed = keys <= queries
            if window is not None:
                allowed &= keys > queries - window
            self.masks[window] = allowed
        return self.masks[window]


@dataclass(slots=True)
class RaggedBatch:
    """What one forward needs to know besides token ids and positions."""

    tensors: KvTensors
    groups: Sequence[Group]
    # (num_tokens,) int64: where the first head of each token is written, in rows of `head_dim` numbers; the next head
    # lies `block_tokens` further
    slots: torch.Tensor
    num_updates: int = 0
    _places: torch.Tensor | None = None

    @property
    def places(self) -> torch.Tensor:
        """(kv_heads * num_tokens,): the slots of all heads, head by head. Made once, not per layer."""
        if self._places is None:
            shape = self.tensors.shape
            heads = torch.arange(shape.kv_heads, device=self.slots.device) * shape.block_tokens
            self._places = (heads[:, None] + self.slots).reshape(-1)
        return self._places

    # --- what transformers calls a cache

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write this step's keys and values, (1, kv_heads, num_tokens, head_dim), into their slots."""
        shape = self.tensors.shape
        if keys.shape[1] != shape.kv_heads or keys.shape[-1] != shape.head_dim or values.shape != keys.shape:
            raise AttentionNotUsable(
                f"layer {layer} makes keys {tuple(keys.shape)} and values {tuple(values.shape)}; "
                f"expected {shape.kv_heads} heads of {shape.head_dim}"
            )
        for rows, new in ((self.tensors.keys[layer], keys), (self.tensors.values[layer], values)):
            rows.view(-1, shape.head_dim).index_copy_(0, self.places, new.reshape(-1, shape.head_dim))
        self.num_updates += 1
        return keys, values

    def get_seq_length(self, *args: Any) -> int:
        """Positions are always passed explicitly; a model that asks would compute wrong ones."""
        raise AttentionNotUsable("the model asks for a cache length instead of using the given positions")


def ragged_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    ragged: RaggedBatch | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention of `query` (1, num_heads, num_tokens, head_dim) over the blocks; (1, num_tokens, heads, dim)."""
    if ragged is None:
        raise AttentionNotUsable(
            "this attention needs the metadata of a ragged batch; without it nothing is causal"
        )
    if attention_mask is not None or options.get("s_aux") is not None:
        raise AttentionNotUsable("attention masks and attention sinks are not supported")
    if not getattr(module, "is_causal", True):
        raise AttentionNotUsable("a model that looks at what comes later cannot go on from kept keys")
    layer = int(module.layer_idx)  # type: ignore[arg-type]  # a plain number on every attention module
    scale = options.get("scaling") or query.shape[-1] ** -0.5
    scoring = Scoring(scale, options.get("sliding_window"), options.get("softcap"))
    queries = query[0].transpose(0, 1)
    output = torch.empty_like(queries)
    for group in ragged.groups:
        tokens = group.tokens
        output[tokens] = attend_group(queries[tokens], ragged.tensors, layer, group, scoring)
    return output[None], None


def attend_group(
    queries: torch.Tensor,
    tensors: KvTensors,
    layer: int,
    group: Group,
    scoring: Scoring,
) -> torch.Tensor:
    """Causal attention of a group's `queries` (num_tokens, num_heads, head_dim) over its blocks; such a tensor."""
    shape = tensors.shape
    num_tokens, num_heads, head_dim = queries.shape
    length = group.rows.shape[1] * shape.block_tokens
    size = (group.num_rows, shape.kv_heads, length, head_dim)
    gather = group.gather(shape)
    keys = tensors.keys[layer].index_select(0, gather).view(size)
    values = tensors.values[layer].index_select(0, gather).view(size)
    # (num_tokens, kv_heads, heads per kv head, head_dim): a KV head serves its group without being repeated
    by_kv_head = queries.reshape(num_tokens, shape.kv_heads, -1, head_dim)
    attend = _attend_decode if group.num_queries == 1 else _attend_prefill
    mask = group.mask(scoring.window, length)
    result = attend(by_kv_head, keys, values, mask, scoring.scale, scoring.softcap)
    return result.reshape(num_tokens, num_heads, head_dim)


def _attend_decode(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """One query per sequence: (num_rows, kv_heads, group, dim) against (num_rows, kv_heads, length, dim)."""
    if softcap is None and query.dtype != torch.float32:
        # Half-precision matrix products are slow on CPUs without them; the fused kernel accumulates in fp32.
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask[:, None], scale=scale
        )
    return _attend_plain(query, key, value, mask[:, None], scale, softcap)


def _attend_prefill(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """Many queries of one sequence: (num_queries, kv_heads, group, dim) against (1, kv_heads, length, dim)."""
    num_queries, kv_heads, group, dim = query.shape
    by_head = query.permute(1, 2, 0, 3)
    if softcap is None:
        wide = (kv_heads, group, key.shape[2], dim)
        shared_key, shared_value = key[0][:, None].expand(wide), value[0][:, None].expand(wide)
        result = functional.scaled_dot_product_attention(
            by_head, shared_key, shared_value, attn_mask=mask, scale=scale
        )
        return result.permute(2, 0, 1, 3)
    flat = by_head.reshape(1, kv_heads, group * num_queries, dim)
    result = _attend_plain(flat, key, value, mask.repeat(1, group, 1)[:, None], scale, softcap)
    return result.view(kv_heads, group, num_queries, dim).permute(2, 0, 1, 3)


def _attend_plain(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """Two matrix products with the softmax in fp32; the only form that can cap scores (Gemma 2)."""
    scores = torch.matmul(query.float() * scale, key.float().transpose(-1, -2))
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    weights = scores.masked_fill_(~mask, -torch.inf).softmax(-1)
    return torch.matmul(weights, value.float()).to(query.dtype)


def register() -> None:
    """Make `attn_implementation=ATTENTION_NAME` known to transformers, which takes a second to import."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION_NAME, ragged_attention)
