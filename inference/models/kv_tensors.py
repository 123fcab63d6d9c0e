"""The memory of keys and values, and where each block lies in it.

On a CPU the whole budget is address space only: the system gives memory when a slab is first written and gets it back
when a slab is empty. On an accelerator all of it is taken at once and stays. Knows nothing about attention or about
who owns which block.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
from dataclasses import dataclass

import numpy as np
import torch

# A slab of at least this size is worth huge pages: gathering blocks takes about an eighth less time from them.
HUGE_PAGE_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class KvShape:
    """Of one block: `(num_layers, K and V, kv_heads, block_tokens, head_dim)`."""

    num_layers: int
    kv_heads: int
    head_dim: int
    block_tokens: int
    dtype: torch.dtype

    @property
    def bytes_per_token(self) -> int:
        return 2 * self.num_layers * self.kv_heads * self.head_dim * self.dtype.itemsize

    @property
    def bytes_per_block(self) -> int:
        return self.bytes_per_token * self.block_tokens


class KvTensors:
    """Keys and values of every block, slab by slab, in each slab layer by layer.

    A row is one head of one block in one layer, `block_tokens * head_dim` numbers: a gathered row is a whole block of
    one head, and the gathered rows of a sequence are one matrix per head. `keys[layer]` and `values[layer]` are views
    of the same rows, each from its own start, so that `rows_of` gives the same numbers for all of them; between the
    rows of one layer lie those of the others. Owned by the runner; `models.attention` reads and writes it.
    """

    def __init__(
        self, shape: KvShape, num_blocks: int, device: torch.device, *, slab_blocks: int = 0
    ) -> None:
        """`slab_blocks` 0 makes one slab of all. Raises OSError or MemoryError when there is no room for the budget."""
        self.shape = shape
        self.device = device
        self.slab_blocks = slab_blocks or num_blocks
        num_slabs = -(-num_blocks // self.slab_blocks)
        num_parts = 2 * shape.num_layers
        self._part_rows = self.slab_blocks * shape.kv_heads
        self._slab_rows = num_parts * self._part_rows
        row = shape.block_tokens * shape.head_dim
        self._memory, flat = _memory(num_slabs * self._slab_rows * row, shape.dtype, device)
        if (
            self._memory is not None
            and self.is_elastic
            and self.slab_blocks * shape.bytes_per_block >= HUGE_PAGE_BYTES
        ):
            with contextlib.suppress(OSError):  # a kernel without them
                self._memory.madvise(mmap.MADV_HUGEPAGE)
        rows = flat.view(-1, row)
        parts = [rows[part * self._part_rows :] for part in range(num_parts)]
        self.keys, self.values = parts[: shape.num_layers], parts[shape.num_layers :]
        self._blocks = flat.view(num_slabs, num_parts, self.slab_blocks, shape.kv_heads * row)

    @property
    def is_elastic(self) -> bool:
        """Whether `give_back` returns memory."""
        return self._memory is not None and sys.platform == "linux"

    def rows_of(self, blocks: np.ndarray) -> np.ndarray:
        """The row of the first head of each block, in `keys[layer]` and `values[layer]` of every layer."""
        slabs, places = np.divmod(blocks, self.slab_blocks)
        rows: np.ndarray = slabs * self._slab_rows + places * self.shape.kv_heads
        return rows

    def block(self, block: int) -> torch.Tensor:
        """A view of one block, (2 * num_layers, kv_heads * block_tokens * head_dim): all keys, then all values."""
        slab, place = divmod(block, self.slab_blocks)
        return self._blocks[slab, :, place]

    def copy_block(self, source: int, target: int) -> None:
        self.block(target).copy_(self.block(source))

    def wipe_block(self, block: int) -> None:
        self.block(block).zero_()

    def read_block(self, block: int) -> bytes:
        """A copy of one block's numbers, in the order of `block`."""
        return self.block(block).view(torch.uint8).cpu().numpy().tobytes()

    def write_block(self, block: int, payload: memoryview) -> None:
        """Make a block what `read_block` gave. The payload may lie at any address; torch wants a round one."""
        numbers = torch.frombuffer(bytearray(payload), dtype=self.shape.dtype)
        self.block(block).copy_(numbers.view(2 * self.shape.num_layers, -1))

    def give_back(self, blocks: range) -> None:
        """Return the memory of one whole slab; it reads as zeros until it is written again."""
        assert self.is_elastic, "this memory was taken for good"
        assert self._memory is not None
        slab_bytes = self.slab_blocks * self.shape.bytes_per_block
        start = blocks.start // self.slab_blocks * slab_bytes
        # Only whole pages: the first and the last may hold blocks of the neighbours.
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (start + slab_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if end > first:
            self._memory.madvise(mmap.MADV_DONTNEED, first, end - first)


def _memory(
    num_values: int, dtype: torch.dtype, device: torch.device
) -> tuple[mmap.mmap | None, torch.Tensor]:
    """Zeros, and on a CPU the mapping that they lie in."""
    if device.type != "cpu":
        return None, torch.zeros(num_values, dtype=dtype, device=device)
    # Private: pages of a shared mapping would stay in memory when they are given back.
    memory = mmap.mmap(-1, num_values * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return memory, torch.frombuffer(memory, dtype=dtype)
