"""Which running sequences try more than one token in a step, and how many.

A draft is verified by the forward that it rides on, and what the model would not have said itself is dropped: answers
stay the same, only steps get fewer. Where drafts fail they cost a little and give nothing, so a sequence whose drafts
fail drafts seldom, and in a large batch none does. Knows sequences and counts; guesses come from `prompt_lookup`.
"""

from __future__ import annotations

from inference.core.drafts import MAX_DRAFT, Drafts
from inference.core.sequence import Sequence

# Measured on a CPU (`make bench-speculation`): two guesses cost an eighth of a step of one sequence, and a third of one
# of four that all try. There quotes still went 1.9 times as fast, but free text lost 4 %.
MAX_SMALL_BATCH = 2


class Speculation:
    """The rule of one core."""

    def __init__(self, mode: str, max_context: int) -> None:
        """`mode` as ENGINE_SPECULATE has it; no text is longer than `max_context` tokens."""
        self._mode = mode
        self._max_context = max_context

    def draft(self, sequence: Sequence, num_running: int) -> tuple[int, ...]:
        """Guesses for a decoding sequence in a batch of so many; none where it should not try, or knows none.

        They leave room for the token that the model makes itself.
        """
        if not self._may_draft(sequence, num_running):
            return ()
        drafts = sequence.drafts = sequence.drafts or Drafts()
        is_forced = self._mode == "always"
        if not is_forced and not drafts.is_due(sequence.num_generated):
            return ()
        longest = min(sequence.admit.max_tokens, self._max_context - sequence.num_prompt)
        length = min(MAX_DRAFT if is_forced else drafts.length, longest - sequence.num_generated - 1)
        return tuple(drafts.lookup.draft(sequence.token_ids, length)) if length > 0 else ()

    def _may_draft(self, sequence: Sequence, num_running: int) -> bool:
        sampling = sequence.admit.sampling
        # What a grammar allows follows from the tokens before: it is known for the next token only.
        if self._mode == "off" or sampling.speculate is False or sampling.grammar is not None:
            return False
        return self._mode == "always" or bool(sampling.speculate) or num_running <= MAX_SMALL_BATCH
