"""What a run has measured so far, on screen and in the docs' files: a stopped run keeps the sizes that it finished.

Knows when what is written, not what is measured. The files of an earlier run stay until this one's first size is whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.cache import report

if TYPE_CHECKING:
    from tests.bench.cache.measure import Figure


class Results:
    """`file` gets the figures as JSON and the page of that name their table; None writes nothing."""

    def __init__(self, machine: str, file: Path | None) -> None:
        self._machine, self._file = machine, file
        self._figures: list[Figure] = []
        self._missing: list[str] = []

    def add(self, figure: Figure) -> None:
        print(report.line(figure), flush=True)
        self._figures.append(figure)

    def miss(self, what: str) -> None:
        self._missing.append(what)
        print(f"NOT MEASURED: {what}", flush=True)

    def write(self, *, ahead: str = "") -> None:
        """`ahead`: what is missing if the run is stopped before it writes again."""
        if self._file is None:
            return
        missing = [*self._missing, ahead] if ahead else self._missing
        self._file.write_text(report.as_json(self._figures, self._machine, missing), encoding="utf-8")
        report.write_table(self._file, self._file.with_suffix(".md"))
