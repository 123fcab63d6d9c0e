"""What one sequence has in a step: tokens that are known, and behind them a draft of what may come next.

Knows counts only; what a chunk becomes on the device is `runner`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inference.core.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Chunk:
    """`num_tokens` tokens of a sequence go through the model, the last of them those of the draft."""

    sequence: Sequence
    num_tokens: int
    draft: tuple[int, ...] = ()  # guesses (`speculation`), which the sequence does not have yet

    @property
    def num_known(self) -> int:
        return self.num_tokens - len(self.draft)

    @property
    def num_rows(self) -> int:
        """After so many of its tokens, the last ones, logits are wanted: the newest known one and each guess."""
        return 1 + len(self.draft)

    @property
    def is_last(self) -> bool:
        """Whether this chunk ends at the newest token, so that its logits give the next one."""
        return self.num_known == self.sequence.num_uncomputed


def num_tokens_of(chunks: Iterable[Chunk]) -> int:
    return sum(chunk.num_tokens for chunk in chunks)
