"""Is the engine ready? Only a token tells: one that real work made lately, or one of a probe.

And is its core beyond hope? One that turns its loop, but makes no token although it has nothing else to do, or fails
probe after probe, does not recover by waiting. Knows times; does not know how a probe is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

# One failure may be a passing lack of memory; the next probe comes an interval later.
MAX_FAILED_PROBES = 3


class Readiness:
    """Told of every step and of the work that waits; says what holds now and when a probe is due.

    Not ready after `timeout_s` without a token; beyond hope after `give_up_s` of a probe that has the core to itself.
    """

    def __init__(
        self, *, interval_s: float, timeout_s: float, give_up_s: float, clock: Callable[[], float]
    ) -> None:
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._give_up_s = give_up_s
        self._clock = clock
        self._num_failed_probes = 0
        self._alone_since: float | None = None
        self._reason = "the core is starting"
        self._token_at: float | None = None
        self._waiting_since: float | None = None
        self._probed_at = 0.0
        self.first_token = asyncio.Event()

    def on_token(self) -> None:
        """A token was made."""
        self._token_at = self._clock()
        self._waiting_since = self._alone_since = None
        self._num_failed_probes = 0
        self.first_token.set()

    def on_progress(self) -> None:
        """A prompt is being read, or texts: what waits is being worked on, but that says nothing about tokens."""
        self._waiting_since = self._alone_since = None

    def on_work(self, has_work: bool, *, is_probe_alone: bool = False) -> None:
        """Called often: how long work waits without a token counts from here."""
        self._waiting_since = self._since(self._waiting_since) if has_work else None
        self._alone_since = self._since(self._alone_since) if is_probe_alone else None

    def on_loading(self, text: str) -> None:
        """Not ready, for this reason, until the next token."""
        self._token_at, self._reason = None, text

    def on_lost(self, reason: str) -> None:
        """There is no core; what was held against it doesn't count for the next one."""
        self.on_loading(f"the core ended: {reason}")
        self._num_failed_probes, self._alone_since = 0, None

    def on_failed_probe(self, error: str) -> None:
        self.on_loading(f"the probe failed: {error}")
        self._num_failed_probes += 1

    def on_probe(self) -> None:
        self._probed_at = self._clock()

    def is_probe_due(self) -> bool:
        """Interval after the last token; a probe that gave none is not repeated at once either."""
        return self._clock() - max(self._token_at or 0.0, self._probed_at) >= self._interval_s

    @property
    def reason(self) -> str:
        """Why the engine is not ready; empty when it is."""
        if self._token_at is None:
            return self._reason
        if (
            self._waiting_since is not None
            and (waited_s := self._clock() - self._waiting_since) > self._timeout_s
        ):
            return f"no token for {waited_s:.1f} s with work pending"
        return ""

    @property
    def complaint(self) -> str:
        """Why this core should be replaced; empty while there is hope."""
        if self._num_failed_probes >= MAX_FAILED_PROBES:
            return f"{self._num_failed_probes} probes in a row failed, {self._reason}"
        alone_s = self._clock() - self._alone_since if self._alone_since is not None else 0.0
        return f"no token for {alone_s:.1f} s with nothing else to do" if alone_s > self._give_up_s else ""

    def _since(self, before: float | None) -> float:
        return self._clock() if before is None else before
