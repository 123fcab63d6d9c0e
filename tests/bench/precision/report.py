"""What was measured of each precision: on screen, as JSON, as the table of docs/engine/precision.md and a picture.

Knows formats and limits only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.claims.findings import Lines
from tests.bench.claims.svg import draw
from tests.bench.pages import put_table
from tests.bench.precision.quality import Quality
from tests.bench.precision.served import BATCHES, Served, memory_limit_mib

MAX_COLD_START_S = 3.0
PICTURES = (
    "![Decode throughput by precision](../pictures/precision.svg)\n\n"
    "All figures: [precision.json](../pictures/precision.json)."
)
HEAD = (
    "| precision | weights MB | agreement | worst gap | mean KL | decode at 1 | at 16 | prefill "
    "| memory MiB (limit) | cold start s |"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One precision of one model."""

    name: str
    weight_bytes: int
    quality: Quality
    served: Served


def broken_limits(rows: Sequence[Row]) -> list[str]:
    """What takes more memory or time than it may, one line each."""
    lines = []
    for row in rows:
        limit = memory_limit_mib(row.weight_bytes)
        if row.served.memory_mib > limit:
            lines.append(f"{row.name}: {row.served.memory_mib:.0f} MiB, more than {limit:.0f}")
        if row.served.cold_start_s > MAX_COLD_START_S:
            lines.append(f"{row.name}: ready after {row.served.cold_start_s:.1f} s, not {MAX_COLD_START_S:g}")
    return lines


def write(rows: Sequence[Row], machine: str, page: Path, figures: Path, picture: Path) -> None:
    """The page gets the table; all other words of it stay."""
    measured = {"machine": machine, "rows": [asdict(row) for row in rows]}
    figures.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    picture.write_text(draw(_picture(rows)), encoding="utf-8")
    put_table(page, "make bench-precision", f"{table(rows, machine)}\n\n{PICTURES}")


def table(rows: Sequence[Row], machine: str) -> str:
    num_places = rows[0].quality.num_places
    lines = [
        f"Measured on {machine}; {num_places} places of fixed answers, rates in tokens a second.",
        "",
        HEAD,
        "|" + "---|" * (HEAD.count("|") - 1),
    ]
    return "\n".join([*lines, *map(_line, rows)])


def _line(row: Row) -> str:
    quality, served = row.quality, row.served
    cells = (
        row.name,
        f"{row.weight_bytes / 1e6:.0f}",
        f"{quality.agreement:.1%}",
        f"{quality.worst_gap:.2f}",
        f"{quality.mean_kl:.4f}",
        f"{served.decode_1:.0f}",
        f"{served.decode_16:.0f}",
        f"{served.prefill:.0f}",
        f"{served.memory_mib:.0f} ({memory_limit_mib(row.weight_bytes):.0f})",
        f"{served.cold_start_s:.1f}",
    )
    return "| " + " | ".join(cells) + " |"


def _picture(rows: Sequence[Row]) -> Lines:
    return Lines(
        "Decode throughput by precision",
        "requests at once",
        "tokens/s",
        tuple(
            (row.name, tuple(zip(BATCHES, (row.served.decode_1, row.served.decode_16), strict=True)))
            for row in rows
        ),
        is_log_x=True,
    )
