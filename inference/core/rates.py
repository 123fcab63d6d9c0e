"""A measured rate: how much of something went by per second lately.

Knows amounts and seconds; does not know what is measured.
"""

from __future__ import annotations

# Half of what a rate says comes from the last five measurements.
WEIGHT_OF_NEWEST = 0.13


class MeasuredRate:
    """Zero until something was measured."""

    def __init__(self) -> None:
        self.per_second = 0.0
        self.measured_at = 0.0

    def measure(self, amount: float, seconds: float, now: float) -> None:
        rate = amount / max(seconds, 1e-6)
        weight = WEIGHT_OF_NEWEST if self.per_second else 1.0
        self.per_second += weight * (rate - self.per_second)
        self.measured_at = now
