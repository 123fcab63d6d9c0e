"""Figures on screen and as the table of docs/page-benchmarks.md. Knows formats and aims only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.pages import put_table


@dataclass(frozen=True, slots=True)
class Figure:
    """`aim` is the most that it may be; None where there is only something to see."""

    what: str
    value: float
    unit: str
    aim: float | None = None

    @property
    def shown(self) -> str:
        return f"{self.value:,.1f} {self.unit}".rstrip()

    @property
    def verdict(self) -> str:
        if self.aim is None:
            return ""
        return f"{'within' if self.value <= self.aim else 'beyond'} {self.aim:,g} {self.unit}".rstrip()


def line(figure: Figure) -> str:
    return f"{figure.what:<56}{figure.shown:>16}   {figure.verdict}"


def write(figures: Sequence[Figure], machine: str, page: Path) -> None:
    """The page gets the table; all other words of it stay."""
    put_table(page, "make bench-page", table(figures, machine))


def table(figures: Sequence[Figure], machine: str) -> str:
    rows = [f"Measured on {machine}.", "", "| what | measured | aim |", "|---|---|---|"]
    rows += [f"| {figure.what} | {figure.shown} | {figure.verdict} |" for figure in figures]
    return "\n".join(rows)
