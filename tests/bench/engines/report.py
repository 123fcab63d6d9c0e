"""What was measured, in docs/engine/benchmarks.md and as pictures. Knows formats only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.claims.findings import Bars
from tests.bench.claims.svg import draw
from tests.bench.engines.goals import Verdict, verdicts
from tests.bench.engines.results import Measured, Results
from tests.bench.pages import put_table

COMMAND = "make bench"
NOTHING = "Nothing was measured yet: `make bench`."


@dataclass(frozen=True, slots=True)
class Label:
    """What an engine is called in the table, and below a bar."""

    text: str
    short: str


@dataclass(frozen=True, slots=True)
class Column:
    workload: str
    figure: str
    head: str


COLUMNS = (
    Column("a", "tokens_per_s", "a tok/s"),
    Column("a", "ttft_p50_ms", "a TTFT p50 ms"),
    Column("a", "tpot_p50_ms", "a TPOT p50 ms"),
    Column("b", "tokens_per_s", "b tok/s"),
    Column("b", "ttft_last_turn_ms", "b TTFT turn 6 ms"),
    Column("c", "ttft_ms", "c TTFT ms"),
    Column("c", "decode_tokens_per_s", "c decode tok/s"),
    Column("d", "ttft_p95_ms", "d TTFT p95 ms"),
    Column("d", "tpot_p95_ms", "d TPOT p95 ms"),
    Column("e", "tokens_per_s", "e tok/s"),
)
PICTURES = {
    "a": ("16 requests with a shared beginning", "tok/s", "a", "tokens_per_s"),
    "b": ("8 conversations of 6 turns", "tok/s", "b", "tokens_per_s"),
    "b-ttft": ("First token of turn 6", "ms", "b", "ttft_last_turn_ms"),
    "c": ("Decode of one stream", "tok/s", "c", "decode_tokens_per_s"),
    "d": ("First token under open load, p95", "ms", "d", "ttft_p95_ms"),
    "e": ("Mixed lengths, never used for tuning", "tok/s", "e", "tokens_per_s"),
}


def page(results: Results, labels: Mapping[str, Label]) -> str:
    """Everything between the marks of the page. `labels` name the engines, in the order of the table."""
    if not results.engines:
        return NOTHING
    pictures = [f"![{PICTURES[name][0]}](../pictures/engines-{name}.svg)" for name in _drawn(results, labels)]
    parts = (_goals(results), _figures(results, labels), _own(results), _abouts(results, labels), pictures)
    return "\n\n".join("\n".join(part) for part in parts if part)


def write(results: Results, labels: Mapping[str, Label], file: Path, pictures: Path) -> None:
    put_table(file, COMMAND, page(results, labels))
    pictures.mkdir(parents=True, exist_ok=True)
    for name, bars in _drawn(results, labels).items():
        (pictures / f"engines-{name}.svg").write_text(draw(bars), encoding="utf-8")


def line(verdict: Verdict) -> str:
    """A goal as a row: floor, stretch, what came, reached or not and by how much."""
    goal = verdict.goal
    value = "" if verdict.value is None else _share(verdict.value, goal.unit)
    if value and verdict.best_peer:
        value += f" of {verdict.best_peer}"
    cells = (goal.workload, goal.text, _share(goal.floor, goal.unit), _share(goal.stretch, goal.unit), value)
    return f"| {' | '.join(cells)} | {_outcome(verdict)} |"


def _outcome(verdict: Verdict) -> str:
    if verdict.missing:
        return f"**not reached**: {verdict.missing}"
    assert verdict.value is not None
    goal = verdict.goal
    floor = _compared("floor", verdict.value, goal.floor, goal.is_time)
    if verdict.stretch_value is None:
        return f"{floor}, stretch **not reached**: {goal.stretch_ours} was not run"
    return f"{floor}, {_compared('stretch', verdict.stretch_value, goal.stretch, goal.is_time)}"


def _compared(what: str, value: float, aim: float, is_time: bool) -> str:
    """By how much of the aim it is better or worse; times are the better the smaller."""
    ahead = (aim - value if is_time else value - aim) / aim
    return f"{what} {'reached' if ahead >= 0 else '**missed**'} by {abs(ahead):.0%}"


def _share(value: float, unit: str) -> str:
    return f"{value:.0%}" if unit == "%" else f"{value:.3g}x"


def _goals(results: Results) -> list[str]:
    head = [
        "| workload | measure | floor | stretch | measured | reached, and by how much |",
        "|---|---|---|---|---|---|",
    ]
    return head + [line(verdict) for verdict in verdicts(results)]


def _figures(results: Results, labels: Mapping[str, Label]) -> list[str]:
    rows = [
        "| engine | " + " | ".join(column.head for column in COLUMNS) + " | memory MiB | cold start s |",
        "|---" * (len(COLUMNS) + 3) + "|",
    ]
    for name, label in labels.items():
        measured = results.engines.get(name, Measured())
        figures = [results.figure(name, column.workload, column.figure) for column in COLUMNS]
        cells = ["" if figure is None else f"{figure:.0f}" for figure in figures]
        if not any(cells):
            cells[0] = "not run" + (f": {measured.absence}" if measured.absence else "")
        ends = [
            f"{measured.memory_mib:.0f}" if measured.memory_mib else "",
            f"{measured.cold_start_s:.1f}" if measured.cold_start_s else "",
        ]
        rows.append(f"| {' | '.join(_plain(cell) for cell in (label.text, *cells, *ends))} |")
    return rows


def _own(results: Results) -> list[str]:
    figures = results.engines.get("own", Measured()).figures.get("own")
    if not figures:
        return []
    products = [
        f"- decode at batch {batch}: {figures[f'batch_{batch}_tokens_per_s']:.0f} tok/s; "
        f"the matrix products alone allow {figures[f'ceiling_{batch}_tokens_per_s']:.0f}"
        for batch in (1, 16)
    ]
    step = (
        f"- a step of 8: {figures['alone_step_ms']:.1f} ms alone, {figures['neighbours_step_ms']:.1f} ms beside two "
        "busy neighbours as low as the site's processes, "
        f"{figures['equal_neighbours_step_ms']:.1f} ms beside two equals of the core"
    )
    return [*products, step]


def _abouts(results: Results, labels: Mapping[str, Label]) -> list[str]:
    """What ran, for all workloads of one run together."""
    lines = []
    for name, measured in sorted(results.engines.items()):
        runs: dict[str, list[str]] = {}
        for workload, about in sorted(measured.abouts.items()):
            runs.setdefault(", ".join(f"{key} {value}" for key, value in sorted(about.items())), []).append(
                workload
            )
        text = labels[name].text if name in labels else name
        lines += [f"- {text} ({', '.join(workloads)}): {about}" for about, workloads in runs.items()]
    return lines


def _drawn(results: Results, labels: Mapping[str, Label]) -> dict[str, Bars]:
    drawn = {}
    for picture, (title, unit, workload, figure) in PICTURES.items():
        bars = [(label.short, results.figure(name, workload, figure)) for name, label in labels.items()]
        known = tuple((short, value) for short, value in bars if value is not None)
        if known:
            drawn[picture] = Bars(title, unit, known)
    return drawn


def _plain(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
