"""Latency classes: who is served before whom, whatever the policy.

Interactive requests come first, offline ones fill what they leave free, background work runs in an empty engine.
Offline work must not wait for ever behind people who never stop coming: one at a time is promoted to their class.
Knows classes and ages; no blocks, no seats.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from inference.core.sequence import Sequence


class LatencyClass(IntEnum):
    """The smaller is served first and preempted last."""

    INTERACTIVE = 0
    OFFLINE = 1
    BACKGROUND = 2


class Classes:
    """The class of every sequence, and the one offline sequence that is promoted."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._promoted: Sequence | None = None
        self._promoted_at = float("-inf")

    def of(self, sequence: Sequence) -> LatencyClass:
        if sequence.is_background:
            return LatencyClass.BACKGROUND
        if sequence.is_offline and sequence is not self._promoted:
            return LatencyClass.OFFLINE
        return LatencyClass.INTERACTIVE

    def place(self, sequence: Sequence) -> tuple[int, int, int]:
        """Place among those who run: the last one is preempted first, the newest of the lowest priority."""
        return self.of(sequence), sequence.admit.priority, sequence.arrival

    def promote(self, unserved: Iterable[Sequence], now: float) -> bool:
        """Let the first offline sequence count as interactive, when it and the last promotion are old enough.

        One every `patience_s`, and only after the one before has ended: people are delayed by little. True when one
        was promoted just now.
        """
        if self._promoted is not None or now - self._promoted_at < self._patience_s:
            return False
        offline = next((s for s in unserved if self.of(s) is LatencyClass.OFFLINE), None)
        if offline is None or now - offline.arrived_at < self._patience_s:
            return False
        self._promoted, self._promoted_at = offline, now
        return True

    def is_promoted(self, sequence: Sequence) -> bool:
        return sequence is self._promoted

    def leave(self, sequence: Sequence) -> None:
        if sequence is self._promoted:
            self._promoted = None
