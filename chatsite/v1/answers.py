"""Several answers as one response: every turn goes through the one flow, and what they say is gathered by choice.

Knows turns and events. Knows neither HTTP nor the shape in which the client wants to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatsite.chat.events import Accepted, Counts, Ended, Piece
from chatsite.chat.pace import AT_END
from chatsite.chat.reply import begun
from chatsite.chat.turn import Turn
from chatsite.v1.errors import failure_of
from inference.types import TokenLogprob


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
    tail = begun(turns, AT_END)
    try:
        while not all(answer.ended for answer in answers):
            match await tail.next():
                case _, Accepted() as accepted:
                    pass
                case index, Piece() as piece:
                    answers[index].add(piece)
                case index, Ended() as ended:
                    answers[index].end(ended)
    finally:
        # Also when the client goes away: then Django cancels this coroutine.
        await tail.close()
    return answers, accepted
