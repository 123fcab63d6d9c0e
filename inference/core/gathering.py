"""How long an idle engine waits for company before it starts a batch.

A bulk load that trickles in is served faster in one batch than in many. Knows arrival times only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from inference.core.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Gathering:
    """Every arrival starts the window `wait_s` again; no request is held for longer than `max_delay_s`. 0: none."""

    wait_s: float = 0.0
    max_delay_s: float = 0.0

    def left_s(self, waiting: Collection[Sequence], num_wanted: int, now: float) -> float:
        """Seconds until the waiting ones start, if nothing else happens; 0 when they may start now."""
        if not waiting or not self.wait_s or len(waiting) >= num_wanted:
            return 0.0
        arrivals = [sequence.arrived_at for sequence in waiting]
        ends_at = min(max(arrivals) + self.wait_s, min(arrivals) + self.max_delay_s)
        return max(0.0, ends_at - now)
