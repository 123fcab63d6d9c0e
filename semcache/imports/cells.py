"""Text as a cell that no spreadsheet calculates, and back. Pure."""

from __future__ import annotations

from typing import Any

# A spreadsheet takes what begins so for a formula, also in full width; blanks before it do not stop it.
FORMULA_SIGNS = tuple("=+-@|%\t\r\n＝＋－＠")


def neutralised(value: Any) -> str:
    """The value as a cell that no spreadsheet calculates: an apostrophe stands before what looks like a formula."""
    text = "" if value is None else str(value)
    return "'" + text if _looks_like_a_formula(text) else text


def plain(cell: str) -> str:
    """The text of a cell that `neutralised` wrote: without the apostrophe that only a spreadsheet needs."""
    return cell[1:] if cell.startswith("'") and _looks_like_a_formula(cell[1:]) else cell


def _looks_like_a_formula(text: str) -> bool:
    return text.lstrip(" ").startswith(FORMULA_SIGNS) or text.lstrip().startswith(FORMULA_SIGNS)
