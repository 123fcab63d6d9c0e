"""Matrices as they are kept and multiplied: which form fits the processor, the number format and the setting.

Each form keeps a weight once: what it was made from is given up. Knows torch's products; `int8` has those of whole
numbers. Does not know what the matrices are for.

The packed form is torch's private door to oneDNN: torch is pinned, and the form is tried before it is taken. Layers of
SmolLM2-135M, two threads, busy neighbours, ms as torch multiplies and packed: bf16, 30 layers, one token 11.6 and 5.4,
16 tokens 16.6 and 9.2; fp32, 10 layers, 17.5 and 9.0, 43.6 and 15.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

Linear = Callable[[torch.Tensor], torch.Tensor]  # (num_rows, inputs) to (num_rows, outputs)
Pack = Callable[[torch.Tensor, torch.Tensor | None], Linear]  # a weight (outputs, inputs) and its bias

# oneDNN orders a weight for so many rows. For 1 to 256 rows 16 was as good as no number or better.
PACKED_FOR_ROWS = 16


@dataclass(frozen=True, slots=True)
class Form:
    """A way to keep matrices. `copies`: what is kept is another tensor than the weight, which is not held on to."""

    description: str
    pack: Pack
    copies: bool
    bytes_per_weight: int | None = None  # None: those of the model's dtype

    def stored_bytes(self, num_weights: int, dtype: torch.dtype) -> int:
        return num_weights * (self.bytes_per_weight or dtype.itemsize)


def plain(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    """As torch multiplies them."""
    return partial(functional.linear, weight=weight, bias=bias)


def packed(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    """In oneDNN's own order, made once instead of in every product. On the CPU only."""
    kept = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), PACKED_FOR_ROWS)

    def product(states: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(states, kept, bias, "none", [], "")
        return result

    return product


PLAIN = Form("matrices as torch multiplies them", plain, copies=False)
PACKED = Form("matrices packed by oneDNN", packed, copies=True)


def best_form(dtype: torch.dtype, device: str) -> Form:
    """Packed where this processor and this torch have such products in `dtype`."""
    return PACKED if torch.device(device).type == "cpu" and works(packed, dtype) else PLAIN


def works(pack: Pack, dtype: torch.dtype) -> bool:
    """Whether a small product of `pack` is done and near to that in fp32; a private operation may be missing."""
    weight = torch.linspace(-1, 1, 32 * 64).view(32, 64)
    states = torch.linspace(1, -1, 2 * 64).view(2, 64)
    try:
        product = pack(weight.to(dtype), None)(states.to(dtype))
    except (AttributeError, NotImplementedError, RuntimeError):
        return False
    expected = states @ weight.t()
    return bool(((product.float() - expected).norm() <= 0.02 * expected.norm()).item())
