"""How much one socket may say and how long it may be deaf. Knows no frames."""

from __future__ import annotations

import time
from collections.abc import Callable

FRAMES_PER_S = 20.0
BURST = 40
MAX_FRAME_CHARS = 64 * 1024  # of any frame but a message
MAX_ERRORS_OVER_RATE = 40  # a client that goes on after so many warnings is closed
MAX_TASKS = 64  # frames of one socket that are being handled
MAX_FOLLOWED = 32  # answers one socket follows
SEND_STALL_S = 30.0  # a client that reads nothing for so long is closed

CLOSE_FLOOD = 4008
CLOSE_DRAINING = 4012
CLOSE_NOT_READING = 4013
CLOSE_SIGNED_OUT = 4401


class TokenBucket:
    """`burst` at once, `per_s` for ever."""

    def __init__(
        self, per_s: float = FRAMES_PER_S, burst: int = BURST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._level = float(burst)
        self._filled_at = clock()

    def take(self) -> bool:
        """False when there was nothing left."""
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._filled_at) * self._per_s)
        self._filled_at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True

    @property
    def is_calm(self) -> bool:
        """Whether the last takes left more than half of the burst."""
        return self._level > self._burst / 2
