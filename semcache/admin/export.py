"""Stored answers as a file: JSON lines that keep everything, CSV that a spreadsheet may open without harm.

Knows the file's shape only; who may take it away is the admin's business.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from typing import Any

from django.db.models import QuerySet

from semcache.imports.cells import neutralised
from semcache.models import CacheEntry

# The file is made in memory.
MAX_ENTRIES = 20_000
COLUMNS = (
    "question", "answer", "rule", "sharing", "tenant", "owner", "model_revision", "generation", "hits", "is_pinned",
    "created_at", "expires_at",
)  # fmt: skip


def as_jsonl(entries: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def as_csv(entries: Iterable[dict[str, Any]]) -> str:
    """With a byte order mark, without which spreadsheets misread Chinese."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    for entry in entries:
        writer.writerow([neutralised(entry[name]) for name in COLUMNS])
    return "\ufeff" + file.getvalue()


FORMATS: dict[str, tuple[str, Callable[[Iterable[dict[str, Any]]], str]]] = {
    "jsonl": ("application/jsonl; charset=utf-8", as_jsonl),
    "csv": ("text/csv; charset=utf-8", as_csv),
}


def rows_of(entries: QuerySet[CacheEntry]) -> list[dict[str, Any]]:
    """One plain dictionary for each entry, by id."""
    found = entries.select_related("rule", "use").defer("embedding", "token_ids").order_by("pk")
    return [_row(entry) for entry in found]


def _row(entry: CacheEntry) -> dict[str, Any]:
    use = getattr(entry, "use", None)
    values = {
        "rule": entry.rule.name,
        "generation": None if entry.generation is None else str(entry.generation),
        "hits": 0 if use is None else use.hits,
        "created_at": entry.created_at.isoformat(),
        "expires_at": entry.expires_at.isoformat(),
    }
    return {name: values[name] if name in values else getattr(entry, name) for name in COLUMNS}
