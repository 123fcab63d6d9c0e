"""Chunks through the model and their next tokens sampled, so that a broken sequence fails alone.

Knows the runner and the sampler, and what is tried again when one of them raises. Does not know queues, blocks or
what follows from an outcome (`books`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from collections.abc import Sequence as Rows
from dataclasses import replace
from itertools import accumulate, islice

import torch

from inference.core.allowed import Allowed
from inference.core.chunk import Chunk
from inference.core.grammars import Grammars
from inference.core.outcome import Outcome
from inference.core.runner import Runner
from inference.core.sampler import BROKEN, Row, are_sound, sample

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
        starts = [0, *accumulate(chunk.num_rows for chunk in chunks)]
        outcomes = [Outcome()] * len(chunks)
        middle = [i for i, chunk in enumerate(chunks) if not chunk.is_last]
        last = [i for i, chunk in enumerate(chunks) if chunk.is_last]
        if middle:
            for i, is_sound in zip(middle, are_sound(logits[[starts[i] for i in middle]]), strict=True):
                outcomes[i] = Outcome() if is_sound else BROKEN
        # An accelerator still computes the logits while the grammars are asked.
        rows: dict[int, Row] = {}  # by place in the logits
        sampled = []
        for i, allowed in zip(last, self._grammars.allowed([chunks[i].sequence for i in last]), strict=True):
            if isinstance(allowed, str):
                outcomes[i] = Outcome(error=f"the answer cannot be held to its grammar: {allowed}")
            else:
                sampled.append(i)
                rows |= enumerate(_rows(chunks[i], allowed), starts[i])
        if rows:
            chosen = logits if len(rows) == len(logits) else logits[list(rows)]
            made = iter(_sample(chosen, list(rows.values())))
            for i in sampled:
                outcomes[i] = _verified(chunks[i].draft, list(islice(made, chunks[i].num_rows)))
        return outcomes


def _rows(chunk: Chunk, allowed: Allowed | None) -> Iterator[Row]:
    """What is to be sampled after the newest token, and after each guess if it and those before it are right."""
    sequence, admit = chunk.sequence, chunk.sequence.admit
    assert allowed is None or not chunk.draft, "a grammar is asked for the next token only"
    for num_guesses in range(chunk.num_rows):
        history = [*sequence.token_ids, *chunk.draft[:num_guesses]] if num_guesses else sequence.token_ids
        yield Row(admit.sampling, history, sequence.num_prompt, admit.stop_ids, allowed)


def _verified(draft: Rows[int], outcomes: list[Outcome]) -> Outcome:
    """The outcome after the newest token with those after the guesses that it and they confirm.

    What a row says depends on its history, its seed and its position only: behind right guesses it says what a step
    of its own would have said. Broken numbers after a wrong guess end the sequence, too: they lie in its blocks, and
    a masked position still multiplies 0 x NaN.
    """
    if BROKEN in outcomes:
        return BROKEN
    num_right = 0
    while num_right < len(draft) and outcomes[num_right].token == draft[num_right]:
        num_right += 1
    return replace(outcomes[0], more=tuple(outcomes[1 : num_right + 1]))


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
