"""Reading live answers with patience: several at a time, whatever is due next, and looking away when nothing is.

No task and no queue: what was not read yet lies in the live texts. Knows places; knows no transport and no form.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial

from chatsite.chat.events import Ended, ReplyEvent
from chatsite.chat.live import LiveAnswer
from chatsite.chat.pace import AT_ONCE, Pace
from chatsite.chat.place import Place

AnswerEvent = tuple[int, ReplyEvent]


class Tail:
    """The events of the answers that were added, each with the number of its answer. `on_close` ends what was read."""

    def __init__(self, pace: Pace, on_close: Callable[[], Awaitable[None]] | None = None) -> None:
        self._pace = pace
        self._on_close = on_close
        self._places: list[Place] = []
        self._due: deque[int] = deque()
        self._changed = asyncio.Event()
        self._broken_off: Exception | None = None

    def add(self, live: LiveAnswer, num_seen: int = 0) -> None:
        """From behind its first `num_seen` pieces on."""
        on_due = partial(self._fall_due, len(self._places))
        self._places.append(Place(live, self._pace, on_due, num_seen))

    async def next(self, timeout_s: float | None = None) -> AnswerEvent | None:
        """None when nothing came in time. Raises the failure of an answer, and what broke the reading off."""
        found = self._taken()
        if found is None:
            await self._wait(timeout_s)
            found = self._taken()
        return found

    def break_off(self, error: Exception) -> None:
        """The reader gets `error` instead of whatever comes next, also of what has come already."""
        self._broken_off = error
        self._changed.set()

    async def close(self) -> None:
        for place in self._places:
            place.leave()
        if self._on_close is not None:
            await self._on_close()

    def _taken(self) -> AnswerEvent | None:
        if self._broken_off is not None:
            raise self._broken_off
        while self._due:
            number = self._due[0]
            event = self._places[number].take()
            if event is not None:
                self._due.rotate(-1)  # they take turns
                return number, event
            self._due.popleft()
        return None

    async def _wait(self, timeout_s: float | None) -> None:
        """Until something is due, or the patience is over."""
        self._changed.clear()
        timer = None
        if timeout_s is not None:
            timer = asyncio.get_running_loop().call_later(timeout_s, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _fall_due(self, number: int) -> None:
        self._due.append(number)
        self._changed.set()


async def events_of(
    live: LiveAnswer, pace: Pace = AT_ONCE, num_seen: int = 0
) -> AsyncGenerator[ReplyEvent, None]:
    """Of one answer, to its end. Raises its failure."""
    tail = Tail(pace)
    tail.add(live, num_seen)
    try:
        while (found := await tail.next()) is not None:
            yield found[1]
            if isinstance(found[1], Ended):
                return
    finally:
        await tail.close()
