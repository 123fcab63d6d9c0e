"""Tables of the ledger as CSV that a spreadsheet opens without running anything in it.

Knows cells; does not know what they mean.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from django.http import StreamingHttpResponse

from semcache.imports.cells import neutralised


def cell(value: Any) -> str:
    """The value as text; one that would be a formula begins with an apostrophe. Numbers are left alone."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, int | float):
        return repr(value)
    return neutralised(value)


def lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """With a byte order mark, without which spreadsheets take UTF-8 for something else."""
    writer = csv.writer(_Echo())
    yield "\ufeff" + writer.writerow(header)
    for row in rows:
        yield writer.writerow([cell(value) for value in row])


def response(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """A file that the browser saves as `name`."""
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(
        lines(header, rows), content_type="text/csv; charset=utf-8", headers=disposition
    )


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text
