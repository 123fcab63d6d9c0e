"""When a process that ended is started again: pure arithmetic on a given clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0
WINDOW_S = 60.0
MOST_RESTARTS_IN_WINDOW = 6


class RestartPolicy:
    """Back-off that doubles while a process never becomes ready, and a bound on restarts a minute in any case.

    The bound is for a process that becomes ready and dies, again and again: there the back-off starts afresh
    each time, because a single death after a good hour must not cost a minute.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._num_failures = 0
        self._restarts: deque[float] = deque(maxlen=MOST_RESTARTS_IN_WINDOW)

    def delay_s(self, *, was_ready: bool, is_misconfigured: bool = False) -> float:
        """Seconds to wait before the next start; counts it as a restart at that time."""
        now = self._clock()
        self._num_failures = 0 if was_ready else self._num_failures
        delay = (
            LONGEST_DELAY_S
            if is_misconfigured
            else min(LONGEST_DELAY_S, FIRST_DELAY_S * 2**self._num_failures)
        )
        self._num_failures = min(self._num_failures + 1, 16)
        if len(self._restarts) == MOST_RESTARTS_IN_WINDOW:
            delay = max(delay, self._restarts[0] + WINDOW_S - now)
        self._restarts.append(now + delay)
        return delay
