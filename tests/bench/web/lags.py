"""How late text arrives: from the times when its tokens were made, and the times when the client read it.

Knows the rule by which the site lets tokens wait for company, and takes that wait off. Knows no connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from chatsite.chat.pace import Pace
from inference.testing.stamps import times_of


@dataclass(frozen=True, slots=True)
class Arrival:
    """A piece of text as the client got it."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one answer."""

    generation: UUID
    arrivals: Sequence[Arrival]


def lags_s(answer: Answer, pace: Pace, between_s: tuple[float, float]) -> list[float]:
    """Of one answer: seconds between the moment each piece was due and the moment it came, if it was due in between.

    The first piece is due when its token is made. The last one leaves with the end of the answer, whose time is not
    known here, so it is left out.
    """
    arrivals, wait_s = answer.arrivals, pace.wait_s(answer.generation)
    assert wait_s is not None
    due_s = [
        _due_s(times_of(arrival.text, arrival.at_s), pace.max_tokens, wait_s, is_first=not number)
        for number, arrival in enumerate(arrivals[:-1])
    ]
    first_s, last_s = between_s
    return [
        arrival.at_s - due for arrival, due in zip(arrivals, due_s, strict=False) if first_s <= due < last_s
    ]


def _due_s(made: Sequence[float], max_tokens: int, wait_s: float, *, is_first: bool) -> float:
    if is_first:
        return made[0]
    by_clock = made[0] + wait_s
    return by_clock if len(made) < max_tokens else min(made[max_tokens - 1], by_clock)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1))]
