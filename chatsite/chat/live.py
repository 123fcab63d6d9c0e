"""The text of one answer while it is made, in this process: written by one task, followed by any number of sockets.

Followers keep a place in the text (`chat.place`) instead of a queue, so a slow one costs nothing and simply gets bigger
pieces. It is a cache: what is durable is in the database, and what is authoritative while running is the engine's log.
Knows no engine, no database and no transport.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol
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


class Follower(Protocol):
    """Who wants to know that there is something new."""

    def on_said(self) -> None: ...


class LiveAnswer:
    """Accumulates events of one generation; ends with `Ended`, with an exception, or handed over."""

    def __init__(self, generation: UUID, text: str = "", seq: int = 0) -> None:
        self.generation = generation
        self.state = State.RUNNING if text else State.QUEUED
        self.accepted: Accepted | None = None
        self.progress: Waiting | Reading | None = None  # only while no text came behind it
        self.ended: Ended | None = None
        self.failure: Exception | None = None
        self.length = len(text)
        self.num_tokens = 0
        self.seq = seq
        # What the database holds after the end; another process may have lost what was seen here.
        self.stored_text: str | None = None
        self._pieces: list[Piece] = [Piece(generation, seq, 0, text)] if text else []
        self._text, self._num_joined = "", 0
        self._followers: set[Follower] = set()
        self._over = asyncio.Event()
        self._unfollowed_since = time.monotonic()

    @property
    def text(self) -> str:
        """All of it. Joined as far as it is new: checkpoints ask for it every second."""
        if fresh := self._pieces[self._num_joined :]:
            self._text += "".join(piece.text for piece in fresh)
            self._num_joined = len(self._pieces)
        return self._text

    @property
    def num_pieces(self) -> int:
        return len(self._pieces)

    @property
    def unfollowed_s(self) -> float:
        """How long nobody in this process has followed it."""
        return 0.0 if self._followers else time.monotonic() - self._unfollowed_since

    @property
    def is_over(self) -> bool:
        return self.ended is not None or self.failure is not None

    def say(self, event: ReplyEvent) -> None:
        """Takes the next event in order; nothing can follow `Ended`."""
        match event:
            case Piece():
                self._pieces.append(event)
                self.length += len(event.text)
                self.num_tokens += event.num_tokens
                self.seq = event.seq
                self.state = State.RUNNING
                self.progress = None
            case Waiting() | Reading():
                self.progress = event
            case Accepted():
                self.accepted = event
            case Ended():
                self.ended = event
                self.state = event.state
        self._tell()

    def add_text(self, seq: int, text: str, num_tokens: int, logprobs: tuple[TokenLogprob, ...] = ()) -> None:
        self.say(Piece(self.generation, seq, self.length, text, num_tokens, logprobs))

    def fail(self, failure: Exception) -> None:
        """Ends without an answer: followers get the exception. Only for what nobody was promised."""
        self.failure = failure
        self._tell()

    def snapshot(self) -> Snapshot:
        return Snapshot(self.text, self.seq, self.state, self.num_pieces)

    def cut(self, after: int) -> Snapshot | None:
        """The text up to event `after`, for who has it already; None for nobody, and where no piece ends there."""
        num_pieces = next((n for n, piece in enumerate(self._pieces, 1) if piece.seq == after), 0)
        if not after or not num_pieces:
            return None
        text = "".join(piece.text for piece in self._pieces[:num_pieces])
        return Snapshot(text, after, self.state, num_pieces)

    def text_behind(self, num_seen: int) -> Piece:
        """All text behind the first `num_seen` pieces, as one: the number of the last, the offset of the first."""
        return self._pieces[-1] if num_seen == len(self._pieces) - 1 else _merged(self._pieces[num_seen:])

    def join(self, follower: Follower) -> None:
        self._followers.add(follower)

    def leave(self, follower: Follower) -> None:
        self._followers.discard(follower)
        self._unfollowed_since = time.monotonic()

    async def wait_end(self) -> None:
        """Returns when nothing more will be said, whatever the end was."""
        await self._over.wait()

    def _tell(self) -> None:
        if self.is_over:
            self._over.set()
        for follower in self._followers:
            follower.on_said()


def _merged(pieces: list[Piece]) -> Piece:
    first, last = pieces[0], pieces[-1]
    return Piece(
        first.generation,
        last.seq,
        first.offset,
        "".join(piece.text for piece in pieces),
        sum(piece.num_tokens for piece in pieces),
        tuple(logprob for piece in pieces for logprob in piece.logprobs),
    )
