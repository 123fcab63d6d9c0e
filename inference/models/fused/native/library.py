"""The compiled operations as `Kernels`.

Knows the signatures of the C++ functions. Does not know how they are compiled (`build`). Tensors are on the CPU, in
fp32 or bf16; every tensor that is given must be contiguous.
"""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int64, c_void_p
from pathlib import Path

import torch

from inference.models.attention import Group, RaggedBatch, Scoring
from inference.models.fused.kernels import Rotation
from inference.models.kv_tensors import KvTensors

# The codes of `DType` in vectors.h.
DTYPES = {torch.float32: 0, torch.bfloat16: 1}
# Chunks up to so many tokens read the blocks where they lie; longer ones are worth laying out for matrix products.
FEW_QUERIES = 16

_SIGNATURES = {
    "rill_norm": [c_int64, *[c_void_p] * 3, c_int64, c_int64, c_float],
    "rill_add_norm": [c_int64, *[c_void_p] * 4, c_int64, c_int64, c_float],
    "rill_norm_heads": [c_int64, *[c_void_p] * 3, *[c_int64] * 5, c_float],
    "rill_gate": [c_int64, c_void_p, c_void_p, c_int64, c_int64],
    "rill_place": [c_int64, *[c_void_p] * 7, *[c_int64] * 5],
    "rill_attend_rows": [*[c_void_p] * 7, *[c_int64] * 3],
    "rill_attend_tiles": [*[c_void_p] * 6, *[c_int64] * 2],
}


class Layout(ctypes.Structure):
    """As `Layout` in paged.h."""

    _fields_ = (
        ("dtype", c_int64),
        ("num_heads", c_int64),
        ("kv_heads", c_int64),
        ("head_dim", c_int64),
        ("block_tokens", c_int64),
        ("window", c_int64),
        ("scale", c_float),
    )


class NativeKernels:
    """Over a library that `build` made for this processor."""

    name = "small operations in C++"

    def __init__(self, library: Path) -> None:
        """Raises OSError where it cannot be loaded."""
        functions = ctypes.CDLL(str(library))  # lets other threads run meanwhile
        for name, arguments in _SIGNATURES.items():
            function = getattr(functions, name)
            function.argtypes, function.restype = arguments, None
        self._functions = functions
        self._layouts: dict[tuple[Scoring, int], tuple[KvTensors, Layout]] = {}

    def norm(self, states: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        out = torch.empty_like(states)
        width = states.shape[-1]
        self._functions.rill_norm(
            DTYPES[states.dtype],
            out.data_ptr(),
            states.data_ptr(),
            weight.data_ptr(),
            states.numel() // width,
            width,
            eps,
        )
        return out

    def add_norm(
        self, states: torch.Tensor, more: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> torch.Tensor:
        out = torch.empty_like(states)
        num_rows, width = states.shape
        self._functions.rill_add_norm(
            DTYPES[states.dtype],
            out.data_ptr(),
            states.data_ptr(),
            more.data_ptr(),
            weight.data_ptr(),
            num_rows,
            width,
            eps,
        )
        return out

    def norm_heads(
        self,
        projected: torch.Tensor,
        query_norm: torch.Tensor,
        key_norm: torch.Tensor,
        num_heads: int,
        eps: float,
    ) -> None:
        num_rows, row_width = projected.shape
        head_dim = len(query_norm)
        self._functions.rill_norm_heads(
            DTYPES[projected.dtype],
            projected.data_ptr(),
            query_norm.data_ptr(),
            key_norm.data_ptr(),
            num_rows,
            row_width,
            num_heads,
            (row_width // head_dim - num_heads) // 2,
            head_dim,
            eps,
        )

    def gate(self, widened: torch.Tensor) -> torch.Tensor:
        num_rows, width = widened.shape[0], widened.shape[1] // 2
        out = widened.new_empty((num_rows, width))
        self._functions.rill_gate(DTYPES[out.dtype], out.data_ptr(), widened.data_ptr(), num_rows, width)
        return out

    def place(
        self, projected: torch.Tensor, rotation: Rotation, batch: RaggedBatch, layer: int, num_heads: int
    ) -> torch.Tensor:
        tensors = batch.tensors
        shape = tensors.shape
        num_rows = len(projected)
        queries = projected.new_empty((num_rows, num_heads, shape.head_dim))
        self._functions.rill_place(
            DTYPES[projected.dtype],
            queries.data_ptr(),
            tensors.keys[layer].data_ptr(),
            tensors.values[layer].data_ptr(),
            projected.data_ptr(),
            rotation.cos.data_ptr(),
            rotation.sin.data_ptr(),
            batch.slots.data_ptr(),
            num_rows,
            num_heads,
            shape.kv_heads,
            shape.head_dim,
            shape.block_tokens,
        )
        return queries

    def attend(self, queries: torch.Tensor, batch: RaggedBatch, layer: int, scoring: Scoring) -> torch.Tensor:
        num_tokens, num_heads, head_dim = queries.shape
        out = queries.new_empty((num_tokens, num_heads * head_dim))
        layout = ctypes.addressof(self._layout(batch.tensors, num_heads, scoring))
        kept = batch.tensors.keys[layer].data_ptr(), batch.tensors.values[layer].data_ptr()
        token_bytes = num_heads * head_dim * queries.itemsize
        for group in batch.groups:
            at = group.start * token_bytes
            self._attend_group(layout, out.data_ptr() + at, queries.data_ptr() + at, kept, group)
        return out

    def _attend_group(self, layout: int, out: int, queries: int, kept: tuple[int, int], group: Group) -> None:
        num_queries, num_blocks = group.num_queries, group.rows.shape[1]
        tables = group.rows.data_ptr()
        if num_queries <= FEW_QUERIES:
            positions = group.positions.data_ptr()
            self._functions.rill_attend_rows(
                layout, out, queries, *kept, tables, positions, group.num_rows, num_queries, num_blocks
            )
            return
        assert group.num_rows == 1, "only single tokens are attended to together"
        length = int(group.positions[0, -1]) + 1
        self._functions.rill_attend_tiles(layout, out, queries, *kept, tables, num_queries, length)

    def _layout(self, tensors: KvTensors, num_heads: int, scoring: Scoring) -> Layout:
        """Made once for each kind of layer."""
        known = self._layouts.get((scoring, num_heads))
        if known is not None and known[0] is tensors:
            return known[1]
        assert scoring.softcap is None, "Llama-shaped layers have none"
        shape = tensors.shape
        layout = Layout(
            DTYPES[shape.dtype],
            num_heads,
            shape.kv_heads,
            shape.head_dim,
            shape.block_tokens,
            scoring.window or 0,
            scoring.scale,
        )
        self._layouts[scoring, num_heads] = tensors, layout
        return layout
