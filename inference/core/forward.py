"""Chunks through the model and their next tokens sampled, so that a broken sequence fails alone.

Knows the runner and the sampler, and what is tried again when one of them raises. Does not know queues, blocks or
what follows from an outcome (`books`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence as Rows

import torch

from inference.core.allowed import Allowed
from inference.core.grammars import Grammars
from inference.core.outcome import Outcome
from inference.core.runner import Runner
from inference.core.sampler import BROKEN, Row, are_sound, sample
from inference.core.scheduler import Chunk
from inference.core.sequence import Sequence

log = logging.getLogger(__name__)


class Forward:
    """One batch at a time, from chunks to outcomes."""

    def __init__(self, runner: Runner, grammars: Grammars) -> None:
        self.runner = runner
        self._grammars = grammars

    def run(self, chunks: Rows[Chunk]) -> list[Outcome]:
        """One outcome per chunk, in their order. When the batch fails each runs alone: only the culprit fails."""
        try:
            logits = self.runner.run(chunks)
        except Exception as error:
            if len(chunks) == 1:
                log.error("sequence %s fails alone: %s", chunks[0].sequence.id, error)
                return [Outcome(error=f"the model failed: {error}")]
            log.exception("a forward of %d sequences failed; running them one by one", len(chunks))
            return [self.run([chunk])[0] for chunk in chunks]
        return self._outcomes(chunks, logits)

    def _outcomes(self, chunks: Rows[Chunk], logits: torch.Tensor) -> list[Outcome]:
        """Chunks in the middle of a prompt get no token, but their numbers are looked at all the same."""
        outcomes = [Outcome()] * len(chunks)
        middle = [i for i, chunk in enumerate(chunks) if not chunk.is_last]
        last = [i for i, chunk in enumerate(chunks) if chunk.is_last]
        if middle:
            for i, is_sound in zip(middle, are_sound(logits[middle]), strict=True):
                outcomes[i] = Outcome() if is_sound else BROKEN
        # An accelerator still computes the logits while the grammars are asked.
        rows: dict[int, Row] = {}
        for i, allowed in zip(last, self._grammars.allowed([chunks[i].sequence for i in last]), strict=True):
            if isinstance(allowed, str):
                outcomes[i] = Outcome(error=f"the answer cannot be held to its grammar: {allowed}")
            else:
                rows[i] = _row(chunks[i].sequence, allowed)
        if rows:
            chosen = logits if len(rows) == len(chunks) else logits[list(rows)]
            for i, outcome in zip(rows, _sample(chosen, list(rows.values())), strict=True):
                outcomes[i] = outcome
        return outcomes


def _row(sequence: Sequence, allowed: Allowed | None) -> Row:
    admit = sequence.admit
    return Row(admit.sampling, sequence.token_ids, sequence.num_prompt, admit.stop_ids, allowed)


def _sample(logits: torch.Tensor, rows: list[Row]) -> list[Outcome]:
    try:
        return sample(logits, rows)
    except Exception:
        log.exception("sampling %d rows failed; sampling them one by one", len(rows))
        return [_sample_alone(logits[i : i + 1], row) for i, row in enumerate(rows)]


def _sample_alone(logits: torch.Tensor, row: Row) -> Outcome:
    try:
        return sample(logits, [row])[0]
    except Exception as error:
        return Outcome(error=f"sampling failed: {error}")
