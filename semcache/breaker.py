"""A circuit breaker: after repeated failures a dependency is left alone for a while.

Pure: time is an argument. Without it every question would wait out the whole time budget of a dead database.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

Clock = Callable[[], float]


class Breaker:
    """Open for `rest_s` after `max_failures` failures within `window_s` seconds; one success closes it.

    After the rest one caller tries; the others wait for its result.
    """

    def __init__(
        self,
        max_failures: int = 5,
        window_s: float = 10.0,
        rest_s: float = 10.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self._failures: deque[float] = deque(maxlen=max_failures)
        self._window_s = window_s
        self._rest_s = rest_s
        self._clock = clock
        self._rests_until: float | None = None

    def allows(self) -> bool:
        """Whether to try now. True after a rest makes the caller the one who tries."""
        now = self._clock()
        if self._rests_until is None:
            return True
        if now < self._rests_until:
            return False
        self._rests_until = now + self._rest_s
        return True

    def failed(self) -> None:
        now = self._clock()
        self._failures.append(now)
        is_full = len(self._failures) == self._failures.maxlen
        if self._rests_until is not None or (is_full and now - self._failures[0] <= self._window_s):
            self._rests_until = now + self._rest_s

    def succeeded(self) -> None:
        self._failures.clear()
        self._rests_until = None
