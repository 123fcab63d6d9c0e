"""The figures as a table for people (Markdown) and as JSON for programs. Only forms, computes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from semcache.evaluation.figures import SHOWN_BOUND, KindLine, SetFigures
from semcache.evaluation.metrics import Point, Rate
from semcache.evaluation.trials import SHIPPED


def table(sets: Iterable[SetFigures]) -> str:
    return "\n".join(line for figures in sets for line in _of_set(figures))


def as_json(sets: Iterable[SetFigures]) -> list[dict[str, Any]]:
    return [
        {
            "set": figures.name,
            "lines": [{"way": line.way, "bound": line.bound, **_point(line.point)} for line in figures.lines],
            "kinds": [
                {
                    "way": kind.way,
                    "kind": kind.kind,
                    "is_trap": kind.is_trap,
                    "num_served": kind.num_served,
                    "total": kind.total,
                }
                for kind in figures.kinds
            ],
            "curves": {way: [_point(point) for point in points] for way, points in figures.curves.items()},
        }
        for figures in sets
    ]


def _of_set(figures: SetFigures) -> Iterator[str]:
    yield f"### {figures.name}\n"
    yield f"| way | bound | threshold | served, of {figures.shares.served_of} | wrong, of {figures.shares.wrong_of} |"
    yield "|---|---|---|---|---|"
    for line in figures.lines:
        bound = "" if line.bound is None else f"{line.bound:.1%}"
        threshold = f"{line.point.threshold:.3f}" if math.isfinite(line.point.threshold) else "none"
        if line.way == SHIPPED:  # the rule has two, and the verifier its own
            threshold = ""
        yield f"| {line.way} | {bound} | {threshold} | {_rate(line.point.served)} | {_rate(line.point.wrong)} |"
    yield ""
    if figures.kinds:
        yield from _of_kinds(figures.kinds)


def _of_kinds(kinds: Sequence[KindLine]) -> Iterator[str]:
    ways = list(dict.fromkeys(line.way for line in kinds))
    served = {(line.way, line.kind, line.is_trap): line.num_served for line in kinds}
    yield f"Served by kind, where at most {SHOWN_BOUND:.0%} may be wrong:\n"
    yield f"| kind | questions | {' | '.join(ways)} |"
    yield "|---|---|" + "---|" * len(ways)
    rows = {(line.is_trap, line.kind): line.total for line in kinds}
    for (is_trap, kind), total in sorted(rows.items()):
        counts = " | ".join(str(served[way, kind, is_trap]) for way in ways)
        yield f"| {'trap' if is_trap else 'same'}: {kind} | {total} | {counts} |"
    yield ""


def _rate(rate: Rate) -> str:
    low, high = rate.interval
    return f"{rate.share:.1%} ({rate.num}/{rate.total}; {low:.1%} to {high:.1%})"


def _point(point: Point) -> dict[str, Any]:
    is_real = math.isfinite(point.threshold)
    return {
        "threshold": point.threshold if is_real else None,
        **{
            name: {"num": rate.num, "total": rate.total, "interval": list(rate.interval)}
            for name, rate in (("served", point.served), ("wrong", point.wrong))
        },
    }
