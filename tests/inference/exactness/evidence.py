"""What a check has seen: rules are not kept by never having met their subject.

Knows numbers and logits by history; does not know what a rule demands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import torch

from inference.core.chunk import Chunk
from inference.core.runner import Runner

# fp32 sums in another order differ by less; a top-2 gap below it is a tie that either order may win.
LOGIT_TOLERANCE = 1e-4

History = tuple[int, ...]


@dataclass
class Evidence:
    """Counts of one check."""

    num_answers: int = 0
    num_rows: int = 0  # logits that were compared
    num_near_ties: int = 0
    worst_gap: float = 0.0
    reused_head: int = 0
    reused_prefix: int = 0
    num_forks: int = 0  # answers that went on from a part of a block
    preemptions: int = 0
    evictions: int = 0
    forgotten: int = 0
    classes: set[str] = field(default_factory=set)  # that had cached blocks
    largest_batch: int = 0
    drafted: int = 0
    accepted: int = 0


@dataclass
class Logits:
    """The row after each history that a core computed."""

    rows: dict[History, torch.Tensor] = field(default_factory=dict)

    def compare(self, cold: Logits, evidence: Evidence) -> None:
        """Every history that both computed has the same logits, within the tolerance."""
        for history in self.rows.keys() & cold.rows.keys():
            gap = float((self.rows[history] - cold.rows[history]).abs().max())
            evidence.worst_gap = max(evidence.worst_gap, gap)
            evidence.num_rows += 1
            assert gap <= LOGIT_TOLERANCE, f"logits differ by {gap} after {len(history)} tokens"

    def is_near_tie(self, history: Sequence[int]) -> bool:
        best, second = self.rows[tuple(history)].topk(2).values.tolist()
        return best - second < LOGIT_TOLERANCE


def histories(chunks: Sequence[Chunk]) -> Iterator[History]:
    """The tokens before each row of a forward, guesses included."""
    for chunk in chunks:
        sequence = chunk.sequence
        known = sequence.token_ids[: sequence.num_computed + chunk.num_known]
        for num_guesses in range(chunk.num_rows):
            yield (*known, *chunk.draft[:num_guesses])


@contextmanager
def recorded() -> Iterator[Logits]:
    """The logits of every forward inside, but for those behind wrong guesses: they are of no text."""
    logits, run = Logits(), Runner.run
    texts: dict[int, list[int]] = {}

    def recording(self: Runner, chunks: Sequence[Chunk]) -> torch.Tensor:
        rows = run(self, chunks)
        texts.update((id(chunk.sequence.token_ids), chunk.sequence.token_ids) for chunk in chunks)
        for history, row in zip(histories(chunks), rows, strict=True):
            logits.rows[history] = row.clone()
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "run", recording)
        yield logits
    known = {tuple(text[:length]) for text in texts.values() for length in range(len(text) + 1)}
    logits.rows = {history: row for history, row in logits.rows.items() if history in known}
