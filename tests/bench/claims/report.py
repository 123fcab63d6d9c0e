"""Findings on screen, in docs/claims.md and as pictures.

Knows files and tables. Keeps the findings of earlier runs, so that one claim can be measured again alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.claims.findings import Finding, Row
from tests.bench.claims.svg import draw

BEGIN, END = "<!-- table: make bench-claims -->", "<!-- end of table -->"
HOLDS = {True: "**yes**", False: "**no**", None: "not measured"}
NOTHING = "Nothing was measured yet: `make bench-claims`."


def show(name: str, finding: Finding) -> str:
    """The finding as lines for a terminal."""
    lines = [f"== {name}"]
    for row in finding.rows:
        lines += [
            f"   claim   {row.claim}  [{row.conditions}]",
            f"   ours    {row.ours}",
            f"           {row.our_conditions}",
            f"   holds   {HOLDS[row.holds].strip('*')}",
            "",
        ]
    return "\n".join(lines)


def write(findings: Mapping[str, Finding], machine: str, docs: Path) -> None:
    """Pictures, numbers and table; what an earlier run found of other claims stays."""
    folder = docs / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for finding in findings.values():
        for name, picture in finding.pictures.items():
            (folder / f"claims-{name}.svg").write_text(draw(picture), encoding="utf-8")
    measured = known_findings(docs) | {
        name: {"machine": machine} | asdict(finding) for name, finding in findings.items()
    }
    text = json.dumps(measured, indent=1, ensure_ascii=False)
    (folder / "claims.json").write_text(text + "\n", encoding="utf-8")
    page = docs / "claims.md"
    page.write_text(render(page.read_text(encoding="utf-8"), measured), encoding="utf-8")


def known_findings(docs: Path) -> dict[str, Any]:
    file = docs / "pictures" / "claims.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def render(page: str, measured: Mapping[str, Any]) -> str:
    """The page with its table made anew from the findings."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "".join([before, BEGIN, "\n", _table(measured), "\n", END, after])


def _table(measured: Mapping[str, Any]) -> str:
    if not measured:
        return NOTHING
    lines = ["| claim | as claimed | ours | measured with | holds here |", "|---|---|---|---|---|"]
    for finding in measured.values():
        lines += [_line(Row(**row)) for row in finding["rows"]]
    machines = sorted({finding["machine"] for finding in measured.values()})
    pictures = [
        f"![{picture['title']}](pictures/claims-{name}.svg)"
        for finding in measured.values()
        for name, picture in finding["pictures"].items()
    ]
    return "\n".join([*lines, "", *(f"Machine: {machine}." for machine in machines), "", *pictures])


def _line(row: Row) -> str:
    cells = (row.claim, row.conditions, row.ours, row.our_conditions, HOLDS[row.holds])
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
