"""What may come next in a text, guessed from the text itself: what followed where its last tokens stood before.

Answers that quote, edit or summarise say much that their prompt says. Looking it up there (Saxena, "Prompt lookup
decoding", 2023) costs no second model. Knows token ids of one sequence; does not know what becomes of a guess.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# The longer match is the better guess; one token alone is followed by anything.
NGRAMS = (3, 2)
FIRST_CAPACITY = 256


class PromptLookup:
    """The history of one sequence, to be searched: some microseconds for a thousand tokens."""

    def __init__(self) -> None:
        self._ids = np.empty(FIRST_CAPACITY, dtype=np.int64)
        self._num_ids = 0

    def draft(self, token_ids: Sequence[int], num_tokens: int) -> list[int]:
        """At most `num_tokens` guesses of what follows `token_ids`; empty where its end stands nowhere before.

        `token_ids` are those of the last call and what came since.
        """
        self._read(token_ids)
        for size in NGRAMS:
            follows = self._follows(size)
            if follows is not None:
                return self._copy(follows, num_tokens)
        return []

    def _read(self, token_ids: Sequence[int]) -> None:
        new = token_ids[self._num_ids :]
        if len(token_ids) > len(self._ids):
            wider = np.empty(2 * len(token_ids), dtype=np.int64)
            wider[: self._num_ids] = self._ids[: self._num_ids]
            self._ids = wider
        self._ids[self._num_ids : len(token_ids)] = new
        self._num_ids = len(token_ids)

    def _follows(self, size: int) -> int | None:
        """Where the text goes on behind the latest earlier occurrence of its last `size` tokens."""
        num_starts = self._num_ids - size  # the end itself is none
        if num_starts <= 0:
            return None
        end = self._ids[num_starts : self._num_ids]
        is_equal = self._ids[:num_starts] == end[0]
        for offset in range(1, size):
            is_equal &= self._ids[offset : num_starts + offset] == end[offset]
        starts = is_equal.nonzero()[0]
        return int(starts[-1]) + size if len(starts) else None

    def _copy(self, start: int, num_tokens: int) -> list[int]:
        """From `start` on, and past the end of the text from the draft itself: so a circle goes on."""
        draft: list[int] = self._ids[start : min(start + num_tokens, self._num_ids)].tolist()
        period = self._num_ids - start
        while len(draft) < num_tokens:
            draft.append(draft[-period])
        return draft
