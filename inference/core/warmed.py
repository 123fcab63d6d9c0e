"""What was read ahead of a question: how much of it a question used, and how much went before any did.

Knows numbers of blocks. Whoever fills, reuses and drops blocks tells it.
"""

from __future__ import annotations

from collections.abc import Iterable


class WarmedBlocks:
    """Full blocks that warm-ups filled and nobody has used since; totals of their tokens."""

    def __init__(self, block_tokens: int) -> None:
        self.num_tokens = 0
        self.num_used_tokens = 0
        self.num_wasted_tokens = 0
        self._block_tokens = block_tokens
        self._blocks: set[int] = set()

    def add(self, block: int) -> None:
        self._blocks.add(block)
        self.num_tokens += self._block_tokens

    def use(self, blocks: Iterable[int]) -> None:
        """A question goes on from these."""
        self.num_used_tokens += self._take(blocks)

    def lose(self, blocks: Iterable[int]) -> None:
        """The content of these is gone."""
        self.num_wasted_tokens += self._take(blocks)

    def _take(self, blocks: Iterable[int]) -> int:
        taken = self._blocks.intersection(blocks)
        self._blocks -= taken
        return len(taken) * self._block_tokens
