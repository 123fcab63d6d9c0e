"""Figures on screen and as the table of docs/web-benchmarks.md. Knows formats and aims only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.pages import put_table
from tests.bench.web.lags import quantile

AIM_P99_MS = 20.0
AIM_GROWTH_MIB = 150.0


@dataclass(frozen=True, slots=True)
class Figure:
    """`lags` in seconds; `facts` are further numbers by their names and units."""

    what: str
    lags: Sequence[float]
    facts: Mapping[str, float] = field(default_factory=dict)

    def lag_ms(self, share: float) -> float:
        return 1000 * quantile(self.lags, share)


def line(figure: Figure) -> str:
    facts = "   ".join(f"{name} {value:.1f}" for name, value in figure.facts.items())
    times = "   ".join(f"p{share:g} {figure.lag_ms(share / 100):7.2f} ms" for share in (50, 95, 99))
    return f"{figure.what:<32}{len(figure.lags):>7} pieces   {times}   {facts}"


def write(figures: Sequence[Figure], machine: str, page: Path) -> None:
    """The page gets the table; all other words of it stay."""
    put_table(page, "make bench-web", table(figures, machine))


def table(figures: Sequence[Figure], machine: str) -> str:
    rows = [
        f"Measured on {machine}.",
        "",
        "| what | pieces | p50 ms | p95 ms | p99 ms | |",
        "|---|---|---|---|---|---|",
    ]
    for figure in figures:
        facts = ", ".join(f"{name} {value:.0f}" for name, value in figure.facts.items())
        times = " | ".join(f"{figure.lag_ms(share):.1f}" for share in (0.5, 0.95, 0.99))
        rows.append(f"| {figure.what} | {len(figure.lags)} | {times} | {facts} |")
    return "\n".join(rows)
