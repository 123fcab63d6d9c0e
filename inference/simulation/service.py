"""How much service users got while they waited for it: the measure of fairness.

Counts for itself what the scheduler's own counters decide by, so that a mistake there shows here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from inference.core.chunk import Chunk
from inference.core.fairness import GENERATED_WEIGHT, PROMPT_WEIGHT, User, user_of
from inference.core.limits import Limits
from inference.core.sequence import Sequence, State


class ServiceGap:
    """The largest difference in service between two users over any time in which both had requests waiting."""

    def __init__(self) -> None:
        self.largest = 0.0
        self._served: dict[User, float] = {}
        self._ranges: dict[tuple[User, User], tuple[float, float]] = {}

    def served(self, chunks: Iterable[Chunk]) -> None:
        """Count a step. Call before it is booked."""
        for chunk in chunks:
            sequence = chunk.sequence
            done = min(sequence.num_computed + chunk.num_tokens, sequence.num_prompt) - sequence.prompt_done
            cost = GENERATED_WEIGHT if sequence.state is State.DECODE else PROMPT_WEIGHT * max(0, done)
            user = user_of(sequence)
            self._served[user] = self._served.get(user, 0.0) + cost

    def look(self, waiting: Iterable[Sequence]) -> None:
        """After a step: whoever waits still is compared with everybody else who does."""
        users = sorted({user_of(sequence) for sequence in waiting if not sequence.is_offline})
        ranges = {}
        for pair in itertools.combinations(users, 2):
            lead = self._served.get(pair[0], 0.0) - self._served.get(pair[1], 0.0)
            least, most = self._ranges.get(pair, (lead, lead))
            ranges[pair] = least, most = min(least, lead), max(most, lead)
            self.largest = max(self.largest, most - least)
        self._ranges = ranges


def bound(limits: Limits, longest_prompt: int, longest_answer: int) -> float:
    """The most that the gap may be: twice the larger of one prompt and what a full batch may still generate.

    Theorem 4.4 of the paper behind `core.fairness`; its M, the tokens of a batch, is what the seats can generate.
    """
    batch = GENERATED_WEIGHT * limits.max_batch * longest_answer
    return 2 * max(PROMPT_WEIGHT * longest_prompt, batch)
