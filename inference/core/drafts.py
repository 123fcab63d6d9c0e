"""How the drafts of one sequence went, and what follows for its next one.

Knows counts of guesses, right and wrong. Whether the sequence may draft at all is `speculation`'s.
"""

from __future__ import annotations

from inference.core.prompt_lookup import PromptLookup

# Guesses in one draft: few until some were right, then more.
FIRST_DRAFT = 2
MAX_DRAFT = 8
# After a draft of which less than this was right a sequence tries none for so many tokens, twice as many each time: one
# right guess in four pays for the rows of all, and in free text a handful of drafts is all that is lost.
LEAST_RIGHT = 1 / 4
FIRST_PAUSE = 1
MAX_PAUSE = 64


class Drafts:
    """How the drafts of one sequence went, and what follows for the next one."""

    def __init__(self) -> None:
        self.lookup = PromptLookup()
        self.length = FIRST_DRAFT
        self._pause = FIRST_PAUSE
        self._resumes_at = 0  # generated tokens

    def is_due(self, num_generated: int) -> bool:
        return num_generated >= self._resumes_at

    def judge(self, num_drafted: int, num_accepted: int, num_generated: int) -> None:
        """The first `num_accepted` guesses of a draft were right; the answer has `num_generated` tokens now."""
        if num_accepted < LEAST_RIGHT * num_drafted:
            self.length = FIRST_DRAFT
            self._resumes_at = num_generated + self._pause
            self._pause = min(2 * self._pause, MAX_PAUSE)
            return
        self._pause = FIRST_PAUSE
        if num_accepted == num_drafted:
            self.length = min(2 * self.length, MAX_DRAFT)
