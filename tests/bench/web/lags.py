"""How late text arrives: from the times when its tokens were made, and the times when the client read it.

Knows the rule by which the site lets tokens wait for company, and takes that wait off. Knows no connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference.testing.stamps import times_of


@dataclass(frozen=True, slots=True)
class Arrival:
    """A piece of text as the client got it."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Company:
    """When the site sends what it holds: at so many tokens, or so long after the first of them."""

    max_tokens: int
    max_wait_s: float


def lags_s(arrivals: Sequence[Arrival], company: Company) -> list[float]:
    """Of one answer: seconds between the moment each piece was due and the moment it came.

    The first piece is due when its token is made. The last one leaves with the end of the answer, whose time is not
    known here, so it is left out.
    """
    return [
        arrival.at_s - _due_s(times_of(arrival.text, arrival.at_s), company, is_first=not number)
        for number, arrival in enumerate(arrivals[:-1])
    ]


def _due_s(made: Sequence[float], company: Company, *, is_first: bool) -> float:
    if is_first:
        return made[0]
    by_clock = made[0] + company.max_wait_s
    return by_clock if len(made) < company.max_tokens else min(made[company.max_tokens - 1], by_clock)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1))]
