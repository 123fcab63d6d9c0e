"""Which tokens may come next in an answer. Knows values only: neither tensors nor grammars."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Allowed:
    """One bit for each token, the lowest first: (num_words,) int32. `is_complete`: nothing but an end may follow."""

    words: np.ndarray
    is_complete: bool = False
