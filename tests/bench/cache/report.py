"""Figures on screen, as JSON, and as the table of docs/semcache/benchmarks.md. Knows formats and aims only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.pages import put_table

if TYPE_CHECKING:
    from tests.bench.cache.measure import Figure

# p95 in ms of look-ups beside an idle engine, at the largest size.
AIMS = {"exact": 3.0, "semantic": 30.0, "verified": 60.0}
AIM_ROWS = 100_000


def line(figure: Figure) -> str:
    times = ""
    if figure.times_ms:
        times = f"p50 {figure.quantile(0.5):7.2f} ms   p95 {figure.quantile(0.95):7.2f} ms"
    facts = "   ".join(f"{name} {value:.1f}" for name, value in figure.facts.items())
    return f"{figure.rows:>8}  {figure.what:<32} {times:<34}{facts}".rstrip()


def as_values(figure: Figure) -> dict[str, Any]:
    return {
        "rows": figure.rows,
        "what": figure.what,
        "p50_ms": round(figure.quantile(0.5), 3) if figure.times_ms else None,
        "p95_ms": round(figure.quantile(0.95), 3) if figure.times_ms else None,
        "count": len(figure.times_ms),
        "facts": {name: round(value, 3) for name, value in figure.facts.items()},
    }


def as_json(figures: Sequence[Figure], machine: str, missing: Sequence[str]) -> str:
    values = {
        "machine": machine,
        "missing": list(missing),
        "figures": [as_values(figure) for figure in figures],
    }
    return json.dumps(values, indent=1) + "\n"


def write_table(figures: Path, page: Path) -> None:
    """The page gets the table of the written figures; all other words of it stay."""
    put_table(page, "make bench-cache", table(json.loads(figures.read_text(encoding="utf-8"))))


def table(measured: Mapping[str, Any]) -> str:
    lines = ["| entries | what | p50 ms | p95 ms | aim, p95 ms | also |", "|---|---|---|---|---|---|"]
    lines += [_row(figure) for figure in measured["figures"]]
    notes = [f"Not measured: {one}." for one in measured["missing"]]
    return "\n".join([*lines, "", f"Machine: {measured['machine']}.", *notes])


def _row(figure: Mapping[str, Any]) -> str:
    facts = ", ".join(f"{name} {value:.1f}" for name, value in figure["facts"].items())
    times = ["" if figure[name] is None else f"{figure[name]:.1f}" for name in ("p50_ms", "p95_ms")]
    cells = (f"{figure['rows']:,}", figure["what"], *times, _aim(figure), facts)
    return "| " + " | ".join(cells) + " |"


def _aim(figure: Mapping[str, Any]) -> str:
    way, _, state = figure["what"].partition(",")
    if figure["rows"] != AIM_ROWS or way not in AIMS or not state.endswith("idle"):
        return ""
    is_reached = figure["p95_ms"] <= AIMS[way]
    return f"{AIMS[way]:.0f}, " + ("reached" if is_reached else "**not reached**")
