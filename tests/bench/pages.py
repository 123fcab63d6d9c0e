"""The place of a bench's table in a page of the docs. Knows no figures."""

from __future__ import annotations

from pathlib import Path

END = "<!-- end of table -->"


def put_table(page: Path, command: str, table: str) -> None:
    """The page gets the `table` of `command`; all other words of it stay. Raises ValueError where it has no place."""
    mark = f"<!-- table: {command} -->"
    before, begin, rest = page.read_text(encoding="utf-8").partition(mark)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} has no place for the table")
    page.write_text("".join([before, mark, "\n", table, "\n", END, after]), encoding="utf-8")
