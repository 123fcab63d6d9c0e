"""What a file of questions and answers says: CSV or JSON lines, as UTF-8, row by row. Pure; judges no row's worth.

CSV names its columns `question` and `answer` (问题, 答案 or 回答) in the first row; comma, semicolon or tab separates,
quoted cells may hold line ends. A JSON line is an object with both; other columns and fields are passed over, so what
the entry browser exports is read as it is.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from semcache.imports.cells import plain

QUESTION_NAMES = frozenset({"question", "问题"})
ANSWER_NAMES = frozenset({"answer", "答案", "回答"})
SEPARATORS = ",;\t"
# That of the export: what was taken out can be brought in again.
MAX_ROWS = 20_000
# Beyond the longest answer of the cache: a cell's length is a row's trouble, not the file's.
MAX_CELL_CHARS = 1_000_000


class Trouble(StrEnum):
    """Why a file is not read at all; stable codes."""

    EMPTY = "empty-file"
    NOT_UTF8 = "not-utf-8"
    NO_COLUMNS = "no-columns"
    BROKEN_CSV = "broken-csv"
    TOO_MANY_ROWS = "too-many-rows"


class UnreadableFile(ValueError):
    """The whole file is refused; `line` is where, 0 where that says nothing."""

    code = "unreadable_file"

    def __init__(self, trouble: Trouble, line: int = 0) -> None:
        super().__init__(f"{trouble} in line {line}" if line else str(trouble))
        self.trouble, self.line = trouble, line


@dataclass(frozen=True, slots=True)
class Row:
    """`line` is where the row ends in the file. Both texts are "" where the line is no JSON object with two texts."""

    line: int
    question: str
    answer: str


def read_rows(content: bytes) -> list[Row]:
    """The rows of the file in order. Raises UnreadableFile."""
    text = _decoded(content)
    rows = []
    for row in _json_rows(text) if text.lstrip().startswith("{") else _csv_rows(text):
        rows.append(row)
        if len(rows) > MAX_ROWS:
            raise UnreadableFile(Trouble.TOO_MANY_ROWS, row.line)
    if not rows:
        raise UnreadableFile(Trouble.EMPTY)
    return rows


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise UnreadableFile(Trouble.NOT_UTF8, content.count(b"\n", 0, problem.start) + 1) from None


def _json_rows(text: str) -> Iterator[Row]:
    # Only a line feed ends a line here: texts may hold every other one.
    for line, said in enumerate(text.split("\n"), start=1):
        if said.strip():
            yield Row(line, *_json_texts(said))


def _json_texts(said: str) -> tuple[str, str]:
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(found, dict):
        return "", ""
    question, answer = found.get("question"), found.get("answer")
    return (question, answer) if isinstance(question, str) and isinstance(answer, str) else ("", "")


def _csv_rows(text: str) -> Iterator[Row]:
    csv.field_size_limit(MAX_CELL_CHARS)
    separator = _separator(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [name.strip().lower() for name in next(reader)]
        places = [_place(names, known) for known in (QUESTION_NAMES, ANSWER_NAMES)]
        for cells in reader:
            if cells:
                question, answer = (plain(cells[place]) if place < len(cells) else "" for place in places)
                yield Row(reader.line_num, question, answer)
    except csv.Error:
        raise UnreadableFile(Trouble.BROKEN_CSV, reader.line_num) from None


def _separator(text: str) -> str:
    """The one that makes both columns of the first row. Raises UnreadableFile."""
    first = text.split("\n", 1)[0]
    for separator in SEPARATORS:
        names = {name.strip().strip('"').lower() for name in first.split(separator)}
        if names & QUESTION_NAMES and names & ANSWER_NAMES:
            return separator
    raise UnreadableFile(Trouble.NO_COLUMNS if text.strip() else Trouble.EMPTY, 1 if text.strip() else 0)


def _place(names: list[str], known: frozenset[str]) -> int:
    for place, name in enumerate(names):
        if name in known:
            return place
    raise UnreadableFile(Trouble.NO_COLUMNS, 1)
