"""Pairs as batches of token ids: which pairs meet in which step, and in which order their texts stand.

Knows nothing of the model. Everything follows from the seed and the number of the step, so a training that was
killed goes on exactly where it was.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from inference.models.encoder import padded
from inference.verifier.generate import Pair

if TYPE_CHECKING:
    from inference.front.encoder_tokenizer import PairIds

MAX_TOKENS = 160  # two long questions; a longer pair is cut, as the tokenizer of pairs does it
_POOL = 32  # so many batches are sorted by length together, which halves the padding
_TARGETS = {True: 0.98, False: 0.02}
_WEAK_TARGETS = {True: 0.9, False: 0.05}  # the same intent is not always the same question


@dataclass(frozen=True, slots=True)
class Batch:
    ids: torch.Tensor  # (num_pairs, num_tokens)
    mask: torch.Tensor
    types: torch.Tensor
    targets: torch.Tensor  # (num_pairs,)


class Batches:
    """Both orders of each pair: one in an epoch, the other in the next."""

    def __init__(
        self, pairs: Sequence[Pair], pair_ids: PairIds, separator: int, size: int, seed: int
    ) -> None:
        self._pair_ids, self._separator, self._size, self._seed = pair_ids, separator, size, seed
        self._pairs = pairs
        self._epoch, self._order = -1, list[list[int]]()
        self.per_epoch = -(-len(pairs) // size)

    def at(self, step: int) -> Batch:
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._shuffled(epoch)
        rows = self._order[place]
        pairs = [self._pairs[row] for row in rows]
        texts = [
            (pair.second, pair.first) if (row + epoch) % 2 else (pair.first, pair.second)
            for row, pair in zip(rows, pairs, strict=True)
        ]
        targets = [(_WEAK_TARGETS if pair.kind == "intent" else _TARGETS)[pair.same] for pair in pairs]
        return to_batch(self._pair_ids(texts, MAX_TOKENS), self._separator, targets)

    def _shuffled(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"{self._seed} {epoch}")  # noqa: S311
        rows = list(range(len(self._pairs)))
        rng.shuffle(rows)
        pool = _POOL * self._size
        for start in range(0, len(rows), pool):
            rows[start : start + pool] = sorted(rows[start : start + pool], key=self._length)
        batches = [rows[start : start + self._size] for start in range(0, len(rows), self._size)]
        rng.shuffle(batches)
        return batches

    def _length(self, row: int) -> int:
        """About: a Chinese character takes three bytes and most of a token, as three English letters do."""
        pair = self._pairs[row]
        return len(pair.first.encode()) + len(pair.second.encode())


def to_batch(token_ids: Sequence[Sequence[int]], separator: int, targets: Sequence[float]) -> Batch:
    ids, mask = padded(token_ids, MAX_TOKENS, "cpu")
    ends = (ids == separator).long()
    types = (ends.cumsum(-1) - ends).clamp_(max=1) * mask  # 1 behind the end of the first text
    return Batch(ids, mask, types, torch.tensor(targets))
