"""What was measured, as JSON and as the table of docs/preloading.md. Knows formats and aims only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.pages import put_table
from tests.bench.web.lags import quantile

AIM_TTFT_SHARE = 0.40  # of the median without, at no load
AIM_OTHERS = 1.05  # of their p95 without, at the highest load
AIM_WASTED = 0.30


@dataclass(frozen=True, slots=True)
class Cell:
    """One way of reading ahead at one load. Times in seconds; tokens are sums over all visits of the cell."""

    ahead: str
    load: float
    ttft_s: Sequence[float]
    others_ttft_s: Sequence[float]
    prompt_tokens: int
    reused_tokens: int
    warmed_tokens: int
    used_tokens: int

    def ttft_ms(self, share: float) -> float:
        return 1000 * quantile(self.ttft_s, share)

    @property
    def others_p95_ms(self) -> float | None:
        return 1000 * quantile(self.others_ttft_s, 0.95) if self.others_ttft_s else None

    @property
    def wasted_share(self) -> float | None:
        return 1 - self.used_tokens / self.warmed_tokens if self.warmed_tokens else None


def aims(cells: Sequence[Cell]) -> list[str]:
    """Each aim with what was reached."""
    by_key = {(cell.ahead, cell.load): cell for cell in cells}
    loads = sorted({cell.load for cell in cells})
    lines = []
    if {("off", loads[0]), ("on open", loads[0])} <= set(by_key):
        share = by_key["on open", loads[0]].ttft_ms(0.5) / by_key["off", loads[0]].ttft_ms(0.5)
        lines.append(
            _aim("time to the first token with warming on open, of that without", share, AIM_TTFT_SHARE)
        )
    before = by_key["off", loads[-1]].others_p95_ms
    for ahead in ("on open", "on type"):
        after = by_key[ahead, loads[-1]].others_p95_ms
        if before and after:
            what = f"others' p95 at {loads[-1]:.0%} load, warming {ahead}, of that without"
            lines.append(_aim(what, after / before, AIM_OTHERS))
    warmed = sum(cell.warmed_tokens for cell in cells)
    if warmed:
        share = 1 - sum(cell.used_tokens for cell in cells) / warmed
        lines.append(_aim("wasted of what was read ahead", share, AIM_WASTED))
    return lines


def _aim(what: str, share: float, most: float) -> str:
    return f"{what}: {share:.0%} (aim: at most {most:.0%}, {'reached' if share <= most else 'missed'})"


def table(cells: Sequence[Cell], machine: str) -> str:
    rows = [
        f"Measured on {machine}.",
        "",
        "| load | read ahead | first token p50 ms | p95 ms | visits | reused | others p95 ms | wasted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        others, wasted = cell.others_p95_ms, cell.wasted_share
        times = f"{cell.ttft_ms(0.5):.0f} | {cell.ttft_ms(0.95):.0f} | {len(cell.ttft_s)}"
        rows.append(
            f"| {cell.load:.0%} | {cell.ahead} | {times} | "
            f"{cell.reused_tokens / max(1, cell.prompt_tokens):.0%} | {'' if others is None else f'{others:.0f}'} | "
            f"{'' if wasted is None else f'{wasted:.0%}'} |"
        )
    return "\n".join([*rows, "", *(f"- {line}" for line in aims(cells))])


def write(cells: Sequence[Cell], machine: str, page: Path, figures: Path) -> None:
    """The page gets the table, all other words of it stay; the JSON file gets every time that was measured."""
    put_table(page, "make bench-preload", table(cells, machine))
    figures.parent.mkdir(parents=True, exist_ok=True)
    found = {"machine": machine, "aims": aims(cells), "cells": [asdict(cell) for cell in cells]}
    figures.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
