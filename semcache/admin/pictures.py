"""Pictures of what rules did, as numbers for an SVG: the estimate of the wrong share over its checks, hits by the hour.

Pure. The template draws; nothing here knows a tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semcache.quality.budget_estimate import Estimate, estimate
from semcache.quality.hours import Tally

WIDTH, HEIGHT = 800, 160
MAX_POINTS = 100


@dataclass(frozen=True, slots=True)
class Course:
    """The estimate after more and more checks. `band` and `line` are points "x,y ..."; `top` is the share at y = 0."""

    band: str
    line: str
    limit_y: float
    top: float
    num: int


@dataclass(frozen=True, slots=True)
class HourBar:
    """One hour's look-ups, and in front of them those served, each from its top down to the ground."""

    x: float
    width: float
    looks: int
    hits: int
    looks_top: float
    looks_height: float
    hits_top: float
    hits_height: float


def course(verdicts: Sequence[bool], limit: float) -> Course | None:
    """The picture of sampled checks, oldest first, True where wrong; None while there is none."""
    if not verdicts:
        return None
    found = _estimates(verdicts)
    last = found[-1]
    top = min(1.0, max(4 * limit, 2 * last.share, 1.5 * last.low, 0.01))

    def x(one: Estimate) -> float:
        return round(one.num * WIDTH / last.num, 1)

    def y(share: float) -> float:
        return round(HEIGHT * (1 - min(share, top) / top), 1)

    upper = [f"{x(one)},{y(one.high)}" for one in found]
    lower = [f"{x(one)},{y(one.low)}" for one in reversed(found)]
    return Course(
        band=" ".join(upper + lower),
        line=" ".join(f"{x(one)},{y(one.share)}" for one in found),
        limit_y=y(limit),
        top=top,
        num=last.num,
    )


def bars(tallies: Sequence[Tally]) -> list[HourBar]:
    """One for each hour, scaled to the busiest."""
    busiest = max([1, *(tally.looks for tally in tallies)])
    width = WIDTH / max(1, len(tallies))
    return [_bar(number * width, width, tally, busiest) for number, tally in enumerate(tallies)]


def _bar(x: float, width: float, tally: Tally, busiest: int) -> HourBar:
    looks_height, hits_height = (round(num * HEIGHT / busiest, 1) for num in (tally.looks, tally.hits))
    return HourBar(
        x=round(x, 1),
        width=round(width * 0.8, 1),
        looks=tally.looks,
        hits=tally.hits,
        looks_top=HEIGHT - looks_height,
        looks_height=looks_height,
        hits_top=HEIGHT - hits_height,
        hits_height=hits_height,
    )


def _estimates(verdicts: Sequence[bool]) -> list[Estimate]:
    """After each check, or after every so many where there are more than a picture shows; the last one always."""
    step = -(-len(verdicts) // MAX_POINTS)
    found, num_wrong = [], 0
    for num, is_wrong in enumerate(verdicts, start=1):
        num_wrong += is_wrong
        if num % step == 0 or num == len(verdicts):
            found.append(estimate(num, num_wrong))
    return found
