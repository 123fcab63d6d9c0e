"""Columns of a chart, one per day, as numbers for an SVG that the server draws: no script, no inline style.

Knows heights and places; does not know what is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HEIGHT, STEP, GAP = 120, 12, 3


@dataclass(frozen=True, slots=True)
class Bar:
    """One rectangle; `series` says which colour it has."""

    x: int
    y: float
    height: float
    series: str


@dataclass(frozen=True, slots=True)
class Column:
    """One day: its bars from the bottom up, and what a pointer reads."""

    label: str
    bars: tuple[Bar, ...]
    total: int
    x: int


@dataclass(frozen=True, slots=True)
class Chart:
    columns: tuple[Column, ...]
    width: int
    top: int  # what the full height stands for
    height: int = HEIGHT
    bar_width: int = STEP - GAP


def chart(labels: Sequence[str], series: Mapping[str, Sequence[int]]) -> Chart:
    """`series` are stacked in their order; each has a number for every label."""
    totals = [sum(numbers) for numbers in zip(*series.values(), strict=True)]
    top = max(totals, default=0)
    columns = []
    for place, label in enumerate(labels):
        bars, below = [], 0.0
        for name, numbers in series.items():
            height = HEIGHT * numbers[place] / top if top else 0.0
            below += height
            if height:
                bars.append(Bar(place * STEP, round(HEIGHT - below, 2), round(height, 2), name))
        columns.append(Column(label, tuple(bars), totals[place], place * STEP))
    return Chart(tuple(columns), max(1, len(labels)) * STEP - GAP, top)
