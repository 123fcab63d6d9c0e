"""What a threshold serves and what it gets wrong: counts, 95 % intervals, curves and the best threshold at a bound.

Pure. A `Trial` is one question asked of the cache; knows neither vectors nor sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Z_95 = 1.959964
NEVER = math.inf  # a threshold that nothing reaches


@dataclass(frozen=True, slots=True)
class Trial:
    """One question asked: `score` is what the threshold is held against, NEVER's negative where nothing may serve.

    `is_right`: the answer found would be right.
    """

    score: float
    is_right: bool
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Rate:
    """`num` of `total`, with the Wilson interval."""

    num: int
    total: int

    @property
    def share(self) -> float:
        return self.num / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.num, self.total)


@dataclass(frozen=True, slots=True)
class Point:
    """At one threshold: right answers served and wrong answers served."""

    threshold: float
    served: Rate
    wrong: Rate


@dataclass(frozen=True, slots=True)
class Totals:
    """What the two rates of a set are taken of: for pairs the paraphrases and the traps, else all requests twice."""

    served_of: int
    wrong_of: int


def wilson(num: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927): also right for 0 of n, and never outside 0 and 1."""
    if total == 0:
        return 0.0, 1.0
    share, spread = num / total, Z_95**2 / total
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(share * (1 - share) * spread + spread**2 / 4) / (1 + spread)
    low = 0.0 if num == 0 else max(0.0, middle - half)
    high = 1.0 if num == total else min(1.0, middle + half)
    return low, high


def of_pairs(trials: Sequence[Trial]) -> Totals:
    """A pair that differs is a trap; the rate of wrong answers is that of traps."""
    num_same = sum(trial.is_right for trial in trials)
    return Totals(num_same, len(trials) - num_same)


def of_requests(trials: Sequence[Trial]) -> Totals:
    return Totals(len(trials), len(trials))


def at(threshold: float, trials: Iterable[Trial], totals: Totals) -> Point:
    served = [trial.is_right for trial in trials if trial.score >= threshold]
    num_right = sum(served)
    return Point(threshold, Rate(num_right, totals.served_of), Rate(len(served) - num_right, totals.wrong_of))


def curve(trials: Sequence[Trial], totals: Totals) -> list[Point]:
    """A point at each score, from the strictest threshold (serves nothing) to the loosest; both rates only rise."""
    points = [Point(NEVER, Rate(0, totals.served_of), Rate(0, totals.wrong_of))]
    num_right = num_wrong = 0
    ordered = sorted((trial for trial in trials if trial.score > -NEVER), key=lambda trial: -trial.score)
    for place, trial in enumerate(ordered):
        num_right += trial.is_right
        num_wrong += not trial.is_right
        if place + 1 == len(ordered) or ordered[place + 1].score < trial.score:
            served, wrong = Rate(num_right, totals.served_of), Rate(num_wrong, totals.wrong_of)
            points.append(Point(trial.score, served, wrong))
    return points


def best_at(bound: float, points: Iterable[Point]) -> Point:
    """The point that serves most while at most `bound` is wrong; of several the strictest."""
    allowed = (point for point in points if point.wrong.share <= bound)
    return max(allowed, key=lambda point: (point.served.num, -point.wrong.num, point.threshold))
