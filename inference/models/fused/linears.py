"""Matrices as they are multiplied."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional

Linear = Callable[[torch.Tensor], torch.Tensor]  # (num_rows, inputs) to (num_rows, outputs)
Pack = Callable[[torch.Tensor, torch.Tensor | None], Linear]  # a weight (outputs, inputs) and its bias


def plain(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    """As torch multiplies them."""
    return partial(functional.linear, weight=weight, bias=bias)
