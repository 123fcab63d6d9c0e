"""What a check has seen: rules are not kept by never having met their subject.

Knows numbers and logits by history; does not know what a rule demands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import torch

from inference.core.runner import Runner
from inference.core.scheduler import Chunk

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


@contextmanager
def recorded() -> Iterator[Logits]:
    """The logits of every forward inside."""
    logits, run = Logits(), Runner.run

    def recording(self: Runner, chunks: Sequence[Chunk]) -> torch.Tensor:
        rows = run(self, chunks)
        for chunk, row in zip(chunks, rows, strict=True):
            sequence = chunk.sequence
            logits.rows[tuple(sequence.token_ids[: sequence.num_computed + chunk.num_tokens])] = row.clone()
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "run", recording)
        yield logits
