"""What a claim's measurement gives: rows of the table and pictures, as plain values that survive JSON.

Knows forms only; no numbers, no files.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One claim beside what we measured. `holds`: whether it does here; None where there was nothing to measure."""

    claim: str
    conditions: str
    ours: str
    our_conditions: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Lines:
    """Curves over one axis: `series` are (name, ((x, y), ...))."""

    title: str
    x: str
    y: str
    series: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    is_log_x: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """One bar for each (label, value)."""

    title: str
    y: str
    bars: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """`pictures` by the end of their file name: docs/pictures/claims-NAME.svg."""

    rows: tuple[Row, ...]
    pictures: dict[str, Lines | Bars]
