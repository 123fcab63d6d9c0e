"""Has an answer begun to go round in circles?

Knows token ids and counts, no text. A list, a table or code repeats its shape and changes its words; a model that is
caught in a loop repeats the very same tokens. So only an exact repetition counts, and only a long one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

# The passage comes at least so many times within what is looked at.
MIN_ROUNDS = 4


class RepetitionDetector:
    """Looks at the last `num_tokens` tokens every `num_tokens` / 4 tokens; 0 never finds anything.

    One look is linear, so a token costs the same whatever `num_tokens` is; an end comes up to a quarter later than
    it could. Looking for the last place of each token instead is cheaper but wrong: in "aab abb aab abb" every
    token also stands nearer than one round.
    """

    def __init__(self, num_tokens: int) -> None:
        self._num_tokens = num_tokens
        self._longest_passage = num_tokens // MIN_ROUNDS
        self._until_next_look = num_tokens
        self._last: deque[int] = deque(maxlen=num_tokens)

    def push(self, token: int) -> bool:
        """Adds a token; True when the last tokens are one passage over and over."""
        if not self._longest_passage:
            return False
        self._last.append(token)
        self._until_next_look -= 1
        if self._until_next_look > 0:
            return False
        self._until_next_look = self._longest_passage
        # A passage has no more different tokens than tokens: nearly every answer is done with here.
        return len(set(self._last)) <= self._longest_passage and (
            shortest_period(list(self._last)) <= self._longest_passage
        )


def shortest_period(tokens: Sequence[int]) -> int:
    """The smallest p > 0 with tokens[i] == tokens[i - p] for every i >= p (Knuth, Morris and Pratt 1977)."""
    borders = [0] * len(tokens)  # length of the longest beginning that also ends at i
    for i in range(1, len(tokens)):
        length = borders[i - 1]
        while length and tokens[i] != tokens[length]:
            length = borders[length - 1]
        borders[i] = length + (tokens[i] == tokens[length])
    return len(tokens) - borders[-1] if tokens else 0
