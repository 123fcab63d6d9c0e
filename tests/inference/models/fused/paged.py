"""Batches over random keys and values in scattered blocks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from inference.models.attention import Group, RaggedBatch
from inference.models.kv_tensors import KvShape, KvTensors


@dataclass(frozen=True)
class Dims:
    """Of one layer of attention."""

    num_heads: int = 6
    kv_heads: int = 2
    head_dim: int = 32
    block_tokens: int = 16
    dtype: torch.dtype = torch.float32

    @property
    def shape(self) -> KvShape:
        return KvShape(2, self.kv_heads, self.head_dim, self.block_tokens, self.dtype)


@dataclass(frozen=True)
class Asked:
    """`num_queries` last tokens of a sequence of `length`, whose first `num_shared` blocks are those of the others."""

    length: int
    num_queries: int = 1
    num_shared: int = 0


def batch_of(dims: Dims, groups: Sequence[Sequence[Asked]], seed: int = 0) -> RaggedBatch:
    """Every group's sequences are padded as the runner does it. Unused blocks hold NaN: nobody may look there."""
    source = random.Random(seed)
    sequences = [asked for group in groups for asked in group]
    num_blocks = [-(-asked.length // dims.block_tokens) for asked in sequences]
    free = list(range(sum(num_blocks) + max(num_blocks) + 3))
    source.shuffle(free)
    tensors = KvTensors(dims.shape, len(free), torch.device("cpu"), slab_blocks=5)
    numbers = torch.Generator().manual_seed(seed)
    for block in range(len(free)):
        tensors.block(block).fill_(torch.nan)
    common = [free.pop() for _ in range(max(num_blocks))]
    made, start, slots = [], 0, []
    for group in groups:
        tables = []
        for asked in group:
            needed = -(-asked.length // dims.block_tokens)
            tables.append(
                [*common[: asked.num_shared], *(free.pop() for _ in range(needed - asked.num_shared))]
            )
            _fill(tensors, tables[-1], asked.length, numbers)
        longest = max(map(len, tables))
        table = np.asarray([[*blocks, *[blocks[0]] * (longest - len(blocks))] for blocks in tables])
        positions = torch.stack([torch.arange(asked.length)[-asked.num_queries :] for asked in group])
        rows = tensors.rows_of(table)
        made.append(Group(start, len(group), group[0].num_queries, torch.from_numpy(rows), positions))
        for row, asked in zip(rows, group, strict=True):
            at = np.arange(asked.length)[-asked.num_queries :]
            slots.append(row[at // dims.block_tokens] * dims.block_tokens + at % dims.block_tokens)
        start += len(group) * group[0].num_queries
    return RaggedBatch(tensors, made, torch.from_numpy(np.concatenate(slots)))


def num_tokens(batch: RaggedBatch) -> int:
    return len(batch.slots)


def _fill(tensors: KvTensors, blocks: list[int], length: int, numbers: torch.Generator) -> None:
    """Of `length` tokens; what is there already stays."""
    shape = tensors.shape
    for number, block in enumerate(blocks):
        kept = tensors.block(block).view(-1, shape.kv_heads, shape.block_tokens, shape.head_dim)
        num = min(shape.block_tokens, length - number * shape.block_tokens)
        new = torch.randn(kept[:, :, :num].shape, generator=numbers)
        empty = kept[:, :, :num].isnan()
        kept[:, :, :num] = torch.where(empty, new.to(shape.dtype), kept[:, :, :num])


def without_nan(batch: RaggedBatch) -> RaggedBatch:
    """The same for operations that read masked places, too."""
    tensors = batch.tensors
    other = KvTensors(
        tensors.shape, len(tensors._blocks) * tensors.slab_blocks, tensors.device, slab_blocks=5
    )
    for mine, theirs in zip(other._blocks, tensors._blocks, strict=True):
        mine.copy_(theirs.nan_to_num(0.0))
    return RaggedBatch(other, batch.groups, batch.slots)
