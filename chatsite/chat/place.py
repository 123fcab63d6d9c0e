"""One follower's place in a live text, and when it hears of more: fewer, bigger pieces, the first one at once.

Text waits for company where it lies, and its follower sleeps meanwhile: waking somebody costs more than a token. The
wait is kept by a timer of its own, so a token never waits for the next one. Knows live answers; knows no transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from chatsite.chat.events import ReplyEvent
from chatsite.chat.live import LiveAnswer
from chatsite.chat.pace import Pace


class Place:
    """Behind the first `num_seen` pieces of `live`, until `leave`. `on_due`: `take` has something to give again."""

    def __init__(self, live: LiveAnswer, pace: Pace, on_due: Callable[[], None], num_seen: int = 0) -> None:
        self._live = live
        self._max_tokens, self._wait_s = pace.max_tokens, pace.wait_s(live.generation)
        self._on_due = on_due
        self._num_seen = num_seen
        self._num_tokens_seen = 0
        self._accepted_said = num_seen > 0
        self._progress_said = live.progress if num_seen else None
        self._has_begun = self._has_ended = self._is_due = False
        self._timer: asyncio.TimerHandle | None = None
        live.join(self)
        self._fall_due()

    def on_said(self) -> None:
        """The live answer has something new."""
        if self._is_due:
            return
        if not self._may_wait():
            self._fall_due()
        elif self._timer is None and self._wait_s is not None:
            self._timer = asyncio.get_running_loop().call_later(self._wait_s, self._fall_due)

    def take(self) -> ReplyEvent | None:
        """What is due, in order, and the end once; None: `on_due` will say when. Raises the failure as the last."""
        live = self._live
        if not self._is_due:
            return None
        if live.accepted is not None and not self._accepted_said:
            self._accepted_said = True
            return live.accepted
        if self._num_seen < live.num_pieces:
            piece = live.text_behind(self._num_seen)
            self._num_seen, self._num_tokens_seen, self._has_begun = live.num_pieces, live.num_tokens, True
            self._is_due = not self._may_wait()  # what came behind this text does not wait
            return piece
        if live.progress is not None and live.progress is not self._progress_said:
            self._progress_said = live.progress
            return live.progress
        if live.ended is not None and not self._has_ended:
            self._has_ended = True
            return live.ended
        if live.failure is not None and live.ended is None:
            raise live.failure
        self._is_due = False
        return None

    def leave(self) -> None:
        self._stop_clock()
        self._live.leave(self)

    def _may_wait(self) -> bool:
        """Only text behind the first one, and only while nothing comes behind it."""
        live = self._live
        return (
            self._has_begun
            and live.num_tokens - self._num_tokens_seen < self._max_tokens
            and not live.is_over
            and (live.progress is None or live.progress is self._progress_said)
        )

    def _fall_due(self) -> None:
        self._stop_clock()
        self._is_due = True
        self._on_due()

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
