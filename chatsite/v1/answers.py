"""Several answers as one response: every turn goes through the one flow, and what they say is gathered by choice.

Knows turns and events. Knows neither HTTP nor the shape in which the client wants to read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from django.conf import settings

from chatsite.chat.coalesce import coalesce
from chatsite.chat.events import Accepted, Counts, Ended, Piece, ReplyEvent
from chatsite.chat.reply import reply
from chatsite.chat.turn import Turn
from chatsite.sse import Pump
from chatsite.v1.errors import ApiError, failure_of
from inference.choices import merged
from inference.types import TokenLogprob

AnswerEvent = tuple[int, ReplyEvent]


@dataclass(slots=True)
class Answer:
    """One choice, as far as it was heard."""

    texts: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    num_streamed: int = 0
    ended: Ended | None = None

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def counts(self) -> Counts:
        return self.ended.counts if self.ended is not None else Counts()

    @property
    def num_tokens(self) -> int:
        """A cached answer was not generated: its tokens are those that were sent."""
        return self.counts.generated_tokens or self.num_streamed

    def add(self, piece: Piece) -> None:
        self.texts.append(piece.text)
        self.logprobs.extend(piece.logprobs)
        self.num_streamed += piece.num_tokens

    def end(self, ended: Ended) -> None:
        """Raises ApiError for every end but that of a complete answer, so that no client takes a part for the whole."""
        if failure := failure_of(ended):
            raise failure
        self.ended = ended


async def gathered(turns: Sequence[Turn]) -> tuple[list[Answer], Accepted | None]:
    """All answers, whole, and what was said when they were accepted. Raises what ends one of them."""
    answers = [Answer() for _ in turns]
    accepted: Accepted | None = None
    # When the client goes away Django cancels this coroutine, and leaving the block ends the generations.
    async with aclosing(merged([reply(turn) for turn in turns])) as events:
        async for index, event in events:
            match event:
                case Accepted():
                    accepted = event
                case Piece():
                    answers[index].add(event)
                case Ended():
                    answers[index].end(event)
    if any(answer.ended is None for answer in answers):
        raise ApiError(500, "internal_error", "The answer ended without saying how.")
    return answers, accepted


def streamed(turns: Sequence[Turn]) -> AsyncGenerator[AnswerEvent]:
    """The events of all answers, by choice, in the order of their arrival. Closing it ends the generations."""
    config = settings.CONFIG
    return merged(
        [coalesce(reply(turn), config.coalesce_tokens, config.coalesce_ms / 1000) for turn in turns]
    )


def pumped(turns: Sequence[Turn]) -> Pump[AnswerEvent]:
    """The same for a reader that may look away. The caller closes it."""
    return Pump(streamed(turns))
