"""The text of one answer while it is made, in this process: written by one task, followed by any number of sockets.

Followers keep a place in the text instead of a queue, so a slow one costs nothing and simply gets bigger pieces.
It is a cache: what is durable is in the database, and what is authoritative while running is the engine's log.
Knows no engine, no database and no transport.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from uuid import UUID

from chatsite.chat.events import Accepted, Ended, Piece, Reading, ReplyEvent, Waiting
from chatsite.chat.models import State
from inference.types import TokenLogprob


class HandedOver(Exception):
    """This process gave the answer up before its end; another one goes on with it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole text up to event `seq`, and the place from which a follower goes on."""

    text: str
    seq: int
    state: State
    num_pieces: int


class LiveAnswer:
    """Accumulates events of one generation; ends with `Ended`, with an exception, or handed over."""

    def __init__(self, generation: UUID, text: str = "", seq: int = 0) -> None:
        self.generation = generation
        self.state = State.RUNNING if text else State.QUEUED
        self.ended: Ended | None = None
        self.length = len(text)
        self.seq = seq
        # What the database holds after the end; another process may have lost what was seen here.
        self.stored_text: str | None = None
        self._pieces: list[Piece] = [Piece(generation, seq, 0, text)] if text else []
        self._accepted: Accepted | None = None
        self._progress: Waiting | Reading | None = None
        self._failure: Exception | None = None
        self._changed = asyncio.Event()
        self._num_followers = 0
        self._unfollowed_since = time.monotonic()

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self._pieces)

    @property
    def unfollowed_s(self) -> float:
        """How long nobody in this process has followed it."""
        return 0.0 if self._num_followers else time.monotonic() - self._unfollowed_since

    @property
    def is_over(self) -> bool:
        return self.ended is not None or self._failure is not None

    def say(self, event: ReplyEvent) -> None:
        """Takes the next event in order; nothing can follow `Ended`."""
        match event:
            case Piece():
                self._pieces.append(event)
                self.length += len(event.text)
                self.seq = event.seq
                self.state = State.RUNNING
                self._progress = None
            case Waiting() | Reading():
                self._progress = event
            case Accepted():
                self._accepted = event
            case Ended():
                self.ended = event
                self.state = event.state
        self._wake()

    def add_text(self, seq: int, text: str, num_tokens: int, logprobs: tuple[TokenLogprob, ...] = ()) -> None:
        self.say(Piece(self.generation, seq, self.length, text, num_tokens, logprobs))

    def fail(self, failure: Exception) -> None:
        """Ends without an answer: followers get the exception. Only for what nobody was promised."""
        self._failure = failure
        self._wake()

    def snapshot(self) -> Snapshot:
        return Snapshot(self.text, self.seq, self.state, len(self._pieces))

    def cut(self, after: int) -> Snapshot | None:
        """The text up to event `after`, for who has it already; None for nobody, and where no piece ends there."""
        num_pieces = next((n for n, piece in enumerate(self._pieces, 1) if piece.seq == after), 0)
        if not after or not num_pieces:
            return None
        text = "".join(piece.text for piece in self._pieces[:num_pieces])
        return Snapshot(text, after, self.state, num_pieces)

    async def follow(self, num_seen: int = 0) -> AsyncGenerator[ReplyEvent, None]:
        """Events after the first `num_seen` pieces, text merged as far as the follower was slow. Raises the failure."""
        self._num_followers += 1
        try:
            async with aclosing(self._follow(num_seen)) as events:
                async for event in events:
                    yield event
        finally:
            self._num_followers -= 1
            self._unfollowed_since = time.monotonic()

    async def _follow(self, num_seen: int) -> AsyncGenerator[ReplyEvent, None]:
        accepted_said = num_seen > 0
        progress_said = self._progress if num_seen else None
        while True:
            changed = self._changed
            if self._accepted is not None and not accepted_said:
                accepted_said = True
                yield self._accepted
            if self._progress is not None and self._progress is not progress_said:
                progress_said = self._progress
                yield progress_said
            if num_seen < len(self._pieces):
                piece, num_seen = _merged(self._pieces[num_seen:]), len(self._pieces)
                yield piece
                continue
            if self.ended is not None:
                yield self.ended
                return
            if self._failure is not None:
                raise self._failure
            await changed.wait()

    async def wait_end(self) -> None:
        """Returns when nothing more will be said, whatever the end was."""
        while not self.is_over:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _merged(pieces: list[Piece]) -> Piece:
    first, last = pieces[0], pieces[-1]
    if first is last:
        return first
    return Piece(
        first.generation,
        last.seq,
        first.offset,
        "".join(piece.text for piece in pieces),
        sum(piece.num_tokens for piece in pieces),
        tuple(logprob for piece in pieces for logprob in piece.logprobs),
    )
