"""Is the engine ready? Only a token tells: one that real work made lately, or one of a probe.

Knows times; does not know how a probe is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Readiness:
    """Told of every step and of the work that waits; says what holds now and when a probe is due."""

    def __init__(self, *, interval_s: float, timeout_s: float, clock: Callable[[], float]) -> None:
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._clock = clock
        self._reason = "the core is starting"
        self._token_at: float | None = None
        self._waiting_since: float | None = None
        self._probed_at = 0.0
        self.first_token = asyncio.Event()

    def on_token(self) -> None:
        """A token was made, or a part of a prompt was read."""
        self._token_at = self._clock()
        self._waiting_since = None
        self.first_token.set()

    def on_progress(self) -> None:
        """Other work got on: what waits is being worked on, but that says nothing about tokens."""
        self._waiting_since = None

    def on_work(self, has_work: bool) -> None:
        """Called often: how long work waits without a token counts from here."""
        if not has_work:
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = self._clock()

    def on_loading(self, text: str) -> None:
        """Not ready, for this reason, until the next token."""
        self._token_at, self._reason = None, text

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
