"""Matrices in whole numbers of one byte: half of what bf16 reads, a quarter of fp32.

Each output has its own scale, the largest weight of its row over 127; zero stays zero. There are two forms, and each
keeps a weight once; side by side they would need as much memory as bf16. `int8` leaves the states of a step as they
are; few rows are quick so, for more the weight is widened each time. `w8a8` makes bytes of the states, too, each row by
its own scale: quick for any number of rows, but states have outliers that make a row coarse, so it lies further
from fp32 than the other (docs/engine/precision.md).

What both gain and cost beside bf16 is in the table of `make bench` (docs/engine/benchmarks.md): one stream decodes with
133 tokens a second in `int8` where bf16 has 86, but sixteen together with 281 where bf16 has 623 and `w8a8` 651.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.nn import functional

from inference.models.errors import ModelNotUsable
from inference.models.fused.linears import PACKED_FOR_ROWS, Form, Linear, works
from inference.models.precision import CPU_DESCRIPTION, processor_flags

LARGEST = 127
ROWS_AT_ONCE = 2048  # a wide copy of the whole head would be the most memory that a start needs
BYTE_PRODUCTS = {"avx512_vnni", "avx_vnni", "amx_int8"}
# torch's product of states with bytes takes each row by itself: 8 took 2.2 times as long as one, 16 took 3.5 times.
MAX_ROWS_ONE_BY_ONE = 8


def quantised(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A weight (outputs, inputs) as int8 and fp32 scales (outputs,); a row of zeros has the scale 1."""
    numbers = torch.empty(weight.shape, dtype=torch.int8)
    scales = torch.empty(len(weight))
    for start in range(0, len(weight), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        wide = weight[rows].float()
        largest = wide.abs().amax(1)
        scales[rows] = torch.where(largest == 0, 1.0, largest / LARGEST)
        numbers[rows] = (wide / scales[rows, None]).round_()
    return numbers, scales


def bytes_of_states(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows as uint8 around 128, and fp32 scales (num_rows, 1). A row that is not finite has a scale that is not."""
    scales = (states.abs().amax(-1, keepdim=True).float() / LARGEST).clamp_min_(1e-12)
    return (states / scales).add_(LARGEST + 1.5).to(torch.uint8), scales  # towards zero, so half more rounds


def both_bytes(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    """Weights and states in bytes, products summed in 32 bits. On the CPU only."""
    numbers, scales = quantised(weight)
    kept = torch.ops.onednn.qlinear_prepack(numbers, [PACKED_FOR_ROWS, weight.shape[1]])
    zeros = torch.zeros(len(scales), dtype=torch.int64)
    out = weight.dtype if weight.dtype is torch.bfloat16 else torch.float32

    def product(states: torch.Tensor) -> torch.Tensor:
        given, row_scales = bytes_of_states(states)
        result: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
            given, 1.0, LARGEST + 1, kept, scales, zeros, None, 1.0, 0, out, "none", [], ""
        )
        result *= row_scales
        if bias is not None:
            result += bias
        return result.to(states.dtype)

    return product


def weight_bytes(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    """Weights in bytes, states as they are: few rows by torch's own product, which is quick in bf16 only."""
    numbers, scales = quantised(weight)
    short_scales, scales = scales.to(torch.bfloat16), scales.to(weight.dtype)

    def product(states: torch.Tensor) -> torch.Tensor:
        if len(states) <= MAX_ROWS_ONE_BY_ONE:
            short = torch.ops.aten._weight_int8pack_mm(states.to(torch.bfloat16), numbers, short_scales)
            result: torch.Tensor = short.to(states.dtype)
        else:
            result = functional.linear(states, numbers.to(states.dtype)) * scales
        return result if bias is None else result + bias

    return product


INT8 = Form("matrices in int8", weight_bytes, copies=True, bytes_per_weight=1)
W8A8 = Form("matrices and their inputs in int8", both_bytes, copies=True, bytes_per_weight=1)


def int8_form(weights: str, dtype: torch.dtype, device: str, description: Path = CPU_DESCRIPTION) -> Form:
    """That of ENGINE_WEIGHTS, int8 or w8a8. Raises ModelNotUsable where this machine doesn't compute it.

    `description` is where Linux describes the processor.
    """
    if torch.device(device).type != "cpu":
        raise ModelNotUsable(f"ENGINE_WEIGHTS={weights} is for processors; on {device} take bf16 or fp16")
    if weights == "int8":
        return INT8
    # oneDNN's product of bytes overflows on others: two of them are summed in 16 bits.
    if BYTE_PRODUCTS.isdisjoint(processor_flags(description)) or not works(both_bytes, dtype):
        raise ModelNotUsable(f"ENGINE_WEIGHTS={weights} needs a processor with VNNI or AMX; take int8")
    return W8A8
