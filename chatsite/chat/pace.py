"""How long text waits for company before it leaves: pure, but for what the site is set to."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

# A step of the model gives text to every answer of its batch at once. What waits falls due one answer after the other
# within this last part of the longest wait: two hundred at once would be sent for 25 ms, the last one that much late.
SPREAD = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """Text leaves when there are so many tokens of it, or so long after the first of them; None: only then."""

    max_tokens: int = 0
    max_wait_s: float | None = 0.0

    def wait_s(self, generation: UUID) -> float | None:
        """How long the text of this answer waits: the longest wait or less, always the same for one answer."""
        if self.max_wait_s is None:
            return None
        return self.max_wait_s * (1 - SPREAD * (generation.int % 1000) / 1000)


AT_ONCE = Pace()
# For who reads an answer as a whole.
AT_END = Pace(sys.maxsize, None)


def pace_of_site() -> Pace:
    return Pace(settings.CONFIG.coalesce_tokens, settings.CONFIG.coalesce_ms / 1000)
