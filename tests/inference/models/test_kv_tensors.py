"""Each block has its own place, whatever the slabs; memory comes with the first write and goes back when asked."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pytest
import torch

from inference.models.kv_tensors import HUGE_PAGE_BYTES, KvShape, KvTensors

SHAPE = KvShape(num_layers=3, kv_heads=2, head_dim=8, block_tokens=4, dtype=torch.float32)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only there memory goes back")


def resident_bytes(tensor: torch.Tensor) -> int:
    """How much of a tensor's storage the system has given memory to."""
    storage = tensor.untyped_storage()
    num_pages = -(-storage.nbytes() // mmap.PAGESIZE)
    pages = (ctypes.c_ubyte * num_pages)()
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.mincore(ctypes.c_void_p(storage.data_ptr()), ctypes.c_size_t(storage.nbytes()), pages)
    assert not failed, ctypes.get_errno()
    return sum(page & 1 for page in pages) * mmap.PAGESIZE


@pytest.mark.parametrize("slab_blocks", [0, 1, 3, 10])
def test_what_a_layer_writes_into_a_block_is_read_from_that_block_only(slab_blocks: int) -> None:
    tensors = KvTensors(SHAPE, 10, torch.device("cpu"), slab_blocks=slab_blocks)
    rows = tensors.rows_of(np.arange(10))
    mark = 0.0
    for layer in range(SHAPE.num_layers):
        for part in (tensors.keys[layer], tensors.values[layer]):
            for block in range(10):
                for head in range(SHAPE.kv_heads):
                    mark += 1
                    part[rows[block] + head] = mark
    everything = torch.cat([tensors.block(block).reshape(-1) for block in range(10)])
    assert len(everything.unique()) == mark == 2 * 3 * 10 * 2
    expected = torch.stack([tensors.block(block) for block in range(10)])
    expected[7], expected[1] = expected[4].clone(), 0
    tensors.copy_block(4, 7)
    tensors.wipe_block(1)
    assert torch.equal(torch.stack([tensors.block(block) for block in range(10)]), expected)
    assert tensors.block(0).shape == (2 * SHAPE.num_layers, SHAPE.kv_heads * 4 * 8)


def test_the_budget_is_address_space_until_it_is_written() -> None:
    shape = KvShape(2, 2, 64, 16, torch.bfloat16)
    tensors = KvTensors(
        shape, 4096, torch.device("cpu"), slab_blocks=512
    )  # 8 MB each: of huge pages, where they exist
    assert resident_bytes(tensors.keys[0]) == 0
    tensors.block(5).fill_(1)
    assert 0 < resident_bytes(tensors.keys[0]) <= 512 * shape.bytes_per_block + HUGE_PAGE_BYTES


@on_linux
@pytest.mark.parametrize("slab_blocks", [16, 17])
def test_a_given_back_slab_costs_no_memory_and_its_neighbours_keep_every_number(slab_blocks: int) -> None:
    """17 blocks are no whole number of pages: a page at the edge belongs to two slabs and must stay."""
    tensors = KvTensors(SHAPE, 3 * slab_blocks, torch.device("cpu"), slab_blocks=slab_blocks)
    for block in range(3 * slab_blocks):
        tensors.block(block).fill_(block + 1)
    full = resident_bytes(tensors.keys[0])
    tensors.give_back(range(slab_blocks, 2 * slab_blocks))
    slab_bytes = slab_blocks * SHAPE.bytes_per_block
    assert full - slab_bytes <= resident_bytes(tensors.keys[0]) <= full - slab_bytes + 2 * mmap.PAGESIZE
    for block in [*range(slab_blocks), *range(2 * slab_blocks, 3 * slab_blocks)]:
        assert (tensors.block(block) == block + 1).all()
    tensors.block(slab_blocks).fill_(7)
    assert (tensors.block(slab_blocks) == 7).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("slab_blocks", [0, 3])
def test_a_block_that_went_out_as_bytes_comes_back_bit_by_bit(dtype: torch.dtype, slab_blocks: int) -> None:
    shape = KvShape(num_layers=3, kv_heads=2, head_dim=8, block_tokens=4, dtype=dtype)
    tensors = KvTensors(shape, 7, torch.device("cpu"), slab_blocks=slab_blocks)
    bits = torch.randint(0, 256, (shape.bytes_per_block,), dtype=torch.uint8)  # NaN and infinities among them
    tensors.block(4).view(torch.uint8).copy_(bits.view(6, -1))
    payload = tensors.read_block(4)
    assert len(payload) == shape.bytes_per_block
    tensors.write_block(1, memoryview(b"odd" + payload)[3:])
    assert torch.equal(tensors.block(1).view(torch.uint8), tensors.block(4).view(torch.uint8))
    assert tensors.read_block(1) == payload
    assert not torch.stack([tensors.block(block).view(torch.uint8) for block in (0, 2, 3, 5, 6)]).any()
