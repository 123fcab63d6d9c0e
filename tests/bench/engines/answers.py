"""What came back: when each piece of an answer arrived, and what that means for several answers together.

Times are of one monotonic clock, in seconds. Knows no engine.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.bench.engines.asks import Ask
from tests.bench.web.lags import quantile

# Between the first piece and the last of a server that gives everything at once.
LEAST_S = 1e-6


class AnswerBroken(Exception):
    """A stream that did not end as was asked for; the text is what the server said."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the answer that arrived at once."""

    at_s: float
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """`ids` is empty where the door gives none."""

    asked_at_s: float
    pieces: tuple[Piece, ...]
    num_tokens: int
    text: str
    ids: tuple[int, ...] = ()

    @property
    def ttft_s(self) -> float:
        return self.pieces[0].at_s - self.asked_at_s

    @property
    def ended_at_s(self) -> float:
        return self.pieces[-1].at_s

    @property
    def tpot_s(self) -> float:
        """Between the first piece and the last, for each token that came in between."""
        num_later = self.num_tokens - self.pieces[0].num_tokens
        return max(LEAST_S, self.ended_at_s - self.pieces[0].at_s) / max(1, num_later)


def checked(ask: Ask, answer: Answer, end: str) -> Answer:
    """The answer. Raises AnswerBroken where it is not as long as was asked for; `end` is what the server said of it."""
    if not answer.pieces or answer.num_tokens != ask.max_tokens:
        raise AnswerBroken(f"{answer.num_tokens} of {ask.max_tokens} tokens came, and then: {end[:600]}")
    return answer


def tokens_per_s(answers: Sequence[Answer]) -> float:
    """All tokens, from the first question to the last piece."""
    began_s = min(answer.asked_at_s for answer in answers)
    return sum(answer.num_tokens for answer in answers) / (
        max(answer.ended_at_s for answer in answers) - began_s
    )


def steady_tokens_per_s(answers: Sequence[Answer]) -> float:
    """Tokens of all, while every answer had begun and none had ended. Raises AnswerBroken where that never was."""
    from_s = max(answer.pieces[0].at_s for answer in answers)
    until_s = min(answer.ended_at_s for answer in answers)
    if until_s <= from_s:
        raise AnswerBroken(f"{len(answers)} answers were never under way together")
    num = sum(
        piece.num_tokens for answer in answers for piece in answer.pieces if from_s < piece.at_s <= until_s
    )
    return num / (until_s - from_s)


def p50_ms(times_s: Iterable[float]) -> float:
    return 1000 * statistics.median(times_s)


def p95_ms(times_s: Iterable[float]) -> float:
    return 1000 * quantile(list(times_s), 0.95)
