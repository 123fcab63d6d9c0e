"""One forward over a ragged batch.

Turns the scheduler's chunks into tensors, runs the model once and gives the logits after each chunk. Owns the KV
tensors. Knows nothing about sampling, queues or why a chunk was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence as Rows

import numpy as np
import torch

from inference.core.chunk import Chunk
from inference.models.attention import Group, RaggedBatch
from inference.models.kv_tensors import KvTensors
from inference.models.network import Network

# A decode group is split where padding would more than double the keys that are read, and by this many blocks at least.
MIN_SPLIT_BLOCKS = 8


class Runner:
    """A network and its KV."""

    def __init__(self, network: Network, tensors: KvTensors) -> None:
        self.tensors = tensors
        self._network = network
        self._device = tensors.device

    @torch.inference_mode()
    def run(self, chunks: Rows[Chunk]) -> torch.Tensor:
        """Write the KV of every chunk; (num_rows, vocabulary) fp32 after the last tokens of each, in their order.

        A chunk has a row after its newest known token and one after each guess of its draft; the first also where no
        token is due yet: broken numbers show there at once. Running the same chunks again is harmless: it writes the
        same slots.
        """
        ordered = _decode_rows_first(chunks)
        batch = self._batch(ordered)
        ends = np.cumsum([chunk.num_tokens for chunk in ordered])
        rows = {
            chunk.sequence.id: np.arange(end - chunk.num_rows, end)
            for chunk, end in zip(ordered, ends, strict=True)
        }
        return self._network(
            self._tensor(np.concatenate([_token_ids(chunk) for chunk in ordered])),
            self._tensor(np.concatenate([_positions(chunk) for chunk in ordered])),
            batch,
            self._tensor(np.concatenate([rows[chunk.sequence.id] for chunk in chunks])),
        )

    def _batch(self, ordered: list[Chunk]) -> RaggedBatch:
        groups = []
        start = 0
        for members in _grouped(ordered, self.tensors.shape.block_tokens):
            groups.append(self._group(members, start))
            start += sum(chunk.num_tokens for chunk in members)
        slots = np.concatenate([self._slots(chunk) for chunk in ordered])
        return RaggedBatch(self.tensors, groups, self._tensor(slots))

    def _group(self, members: list[Chunk], start: int) -> Group:
        shape = self.tensors.shape
        num_blocks = max(_num_blocks(chunk, shape.block_tokens) for chunk in members)
        table = np.empty((len(members), num_blocks), dtype=np.int64)
        for row, chunk in zip(table, members, strict=True):
            used = chunk.sequence.blocks[:num_blocks]
            row[: len(used)] = used
            row[len(used) :] = used[0]  # never looked at, but must hold finite numbers
        return Group(
            start=start,
            num_rows=len(members),
            num_queries=members[0].num_tokens,
            rows=self._tensor(self.tensors.rows_of(table)),
            positions=self._tensor(np.stack([_positions(chunk) for chunk in members])),
        )

    def _slots(self, chunk: Chunk) -> np.ndarray:
        """(num_tokens,): where the first head of the chunk's keys and values goes, as `RaggedBatch` wants it."""
        shape = self.tensors.shape
        positions = _positions(chunk)
        first = chunk.sequence.num_computed // shape.block_tokens
        written = np.asarray(
            chunk.sequence.blocks[first : _num_blocks(chunk, shape.block_tokens)], dtype=np.int64
        )
        blocks = written[positions // shape.block_tokens - first]
        slots: np.ndarray = self.tensors.rows_of(blocks) * shape.block_tokens + positions % shape.block_tokens
        return slots

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)


def _decode_rows_first(chunks: Rows[Chunk]) -> list[Chunk]:
    """Single tokens by falling length, so that neighbours need like padding; then the longer chunks."""
    singles = [chunk for chunk in chunks if chunk.num_tokens == 1]
    singles.sort(key=lambda chunk: -chunk.sequence.num_computed)
    return [*singles, *(chunk for chunk in chunks if chunk.num_tokens > 1)]


def _grouped(ordered: list[Chunk], block_tokens: int) -> list[list[Chunk]]:
    groups: list[list[Chunk]] = []
    longest = 0
    for chunk in ordered:
        length = _num_blocks(chunk, block_tokens)
        fits = groups and chunk.num_tokens == 1 and longest - length <= max(length, MIN_SPLIT_BLOCKS)
        if fits:
            groups[-1].append(chunk)
        else:
            groups.append([chunk])
            longest = length
    return groups


def _num_blocks(chunk: Chunk, block_tokens: int) -> int:
    return -(-(chunk.sequence.num_computed + chunk.num_tokens) // block_tokens)


def _positions(chunk: Chunk) -> np.ndarray:
    start = chunk.sequence.num_computed
    return np.arange(start, start + chunk.num_tokens, dtype=np.int64)


def _token_ids(chunk: Chunk) -> np.ndarray:
    start = chunk.sequence.num_computed
    known = chunk.sequence.token_ids[start : start + chunk.num_known]
    return np.asarray([*known, *chunk.draft], dtype=np.int64)
