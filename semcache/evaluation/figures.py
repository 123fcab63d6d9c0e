"""The figures of a set: thresholds chosen on its own dev or train half, applied to its test half.

Pure arithmetic over trials. Knows the error bounds that are reported and nothing of where trials come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semcache.evaluation.metrics import Point, Totals, Trial, at, best_at, curve, of_pairs, of_requests
from semcache.evaluation.trials import COSINE, SHIPPED, Trials

BOUNDS = (0.0, 0.005, 0.01, 0.02, 0.05)
COMMON_THRESHOLD = 0.92  # what caches ship with
SHOWN_BOUND = 0.02
MAX_CURVE_POINTS = 200


@dataclass(frozen=True, slots=True)
class Shares:
    """What the two rates of a set are shares of, in numbers and in words."""

    totals_of: Callable[[Sequence[Trial]], Totals]
    served_of: str
    wrong_of: str


PAIRS = Shares(of_pairs, "same questions", "traps")
REQUESTS = Shares(of_requests, "all requests", "all requests")


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table. `bound` is None where the threshold is fixed beforehand."""

    way: str
    bound: float | None
    point: Point


@dataclass(frozen=True, slots=True)
class KindLine:
    """How many questions of one kind a way serves at the shown bound."""

    way: str
    kind: str
    is_trap: bool
    num_served: int
    total: int


@dataclass(frozen=True, slots=True)
class SetFigures:
    name: str
    shares: Shares
    lines: tuple[Line, ...]
    kinds: tuple[KindLine, ...]
    curves: dict[str, list[Point]]


@dataclass(frozen=True, slots=True)
class Halves:
    """The trials of one set: `tuned` chooses thresholds, `test` gives figures."""

    name: str
    tuned: Trials
    test: Trials
    shares: Shares
    has_kinds: bool = True


def figures(halves: Halves) -> SetFigures:
    lines = [Line(f"{COSINE} at {COMMON_THRESHOLD}", None, _applied(halves, COSINE, COMMON_THRESHOLD))]
    lines += [Line(SHIPPED, None, _applied(halves, SHIPPED, 1.0))] if SHIPPED in halves.test else []
    kinds = []
    ways = [way for way in halves.test if way != SHIPPED]
    for way in ways:
        chosen = {bound: _chosen(halves, way, bound) for bound in BOUNDS}
        lines += [Line(way, bound, _applied(halves, way, threshold)) for bound, threshold in chosen.items()]
        if halves.has_kinds:
            kinds += _kinds(way, halves.test[way], chosen[SHOWN_BOUND])
    for way in ways:
        lines += [
            Line(f"{way}, best seen afterwards", bound, _hindsight(halves, way, bound)) for bound in BOUNDS
        ]
    curves = {
        way: _thinned(curve(halves.test[way], halves.shares.totals_of(halves.test[way]))) for way in ways
    }
    return SetFigures(halves.name, halves.shares, tuple(lines), tuple(kinds), curves)


def _chosen(halves: Halves, way: str, bound: float) -> float:
    trials = halves.tuned[way]
    return best_at(bound, curve(trials, halves.shares.totals_of(trials))).threshold


def _applied(halves: Halves, way: str, threshold: float) -> Point:
    trials = halves.test[way]
    return at(threshold, trials, halves.shares.totals_of(trials))


def _hindsight(halves: Halves, way: str, bound: float) -> Point:
    """The best threshold that the test half itself shows: more than anybody could have known."""
    trials = halves.test[way]
    return best_at(bound, curve(trials, halves.shares.totals_of(trials)))


def _kinds(way: str, trials: Sequence[Trial], threshold: float) -> list[KindLine]:
    found = []
    for kind, is_right in sorted({(trial.kind, trial.is_right) for trial in trials}):
        of_kind = [trial for trial in trials if (trial.kind, trial.is_right) == (kind, is_right)]
        num_served = sum(trial.score >= threshold for trial in of_kind)
        found.append(KindLine(way, kind, not is_right, num_served, len(of_kind)))
    return found


def _thinned(points: list[Point]) -> list[Point]:
    step = max(1, len(points) // MAX_CURVE_POINTS)
    return [*points[::step], points[-1]]
