"""Files of questions and answers as people have them: spreadsheets' CSV, JSON lines, and what is neither."""

from __future__ import annotations

import json

import pytest

from semcache.admin.export import as_csv, as_jsonl
from semcache.imports import file as import_file
from semcache.imports.file import Row, Trouble, UnreadableFile, read_rows

TRICKY = ["=1+1", "'quoted", 'Say "hi";\nthen\tgo, on', "第一行\r\n\u2028end", "- a list", " blanks "]


def texts(content: str | bytes) -> list[tuple[str, str]]:
    content = content.encode() if isinstance(content, str) else content
    return [(row.question, row.answer) for row in read_rows(content)]


def trouble(content: str | bytes) -> tuple[Trouble, int]:
    with pytest.raises(UnreadableFile) as refused:
        texts(content)
    return refused.value.trouble, refused.value.line


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_spreadsheets_csv_is_read(separator, line_end, mark):
    lines = [
        ("id", "Question", "answer"),
        ("1", "Who?", '"Ann, Bo; or\tCy"'),
        ("2", "谁？", '"first\nsecond ""x"""'),
    ]
    content = mark + line_end.join(separator.join(cells) for cells in lines) + line_end
    assert texts(content) == [("Who?", "Ann, Bo; or\tCy"), ("谁？", 'first\nsecond "x"')]


def test_chinese_column_names_are_known():
    assert texts("答案,问题\n可以。,能退款吗？\n") == [("能退款吗？", "可以。")]


def test_a_row_knows_its_line_in_the_file():
    assert read_rows(b'question,answer\na,"1\n2"\n\nb,3\n') == [Row(3, "a", "1\n2"), Row(5, "b", "3")]


def test_json_lines_are_read_and_a_bad_one_costs_only_itself():
    lines = ['{"question": "a", "answer": "1", "more": 2}', "", "{", "[1]", '{"question": 5, "answer": "x"}',
             '{"question": "b"}', '{"question": "c", "answer": "\\ud83d\\ude00"}', "{" * 100_000]  # fmt: skip
    rows = read_rows("\n".join(lines).encode())
    assert [(row.line, row.question, row.answer) for row in rows] == [
        (1, "a", "1"), (3, "", ""), (4, "", ""), (5, "", ""), (6, "", ""), (7, "c", "\U0001f600"), (8, "", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("written", [as_jsonl, as_csv])
def test_what_the_browser_exports_is_read_back_as_it_was(written):
    names = ("rule", "sharing", "tenant", "owner", "model_revision", "generation", "hits", "is_pinned", "created_at",
             "expires_at")  # fmt: skip
    entries = [dict.fromkeys(names, "") | {"question": f"q {text}", "answer": text} for text in TRICKY]
    assert texts(written(entries)) == [(f"q {text}", text) for text in TRICKY]


def test_a_row_that_is_too_short_has_no_answer():
    assert texts("question,answer\nonly\n") == [("only", "")]


def test_other_encodings_are_named_and_not_guessed():
    said = "question,answer\n能退款吗？,可以。\n"
    assert trouble(said.encode("gbk")) == (Trouble.NOT_UTF8, 2)
    assert trouble(said.encode("utf-16")) == (Trouble.NOT_UTF8, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", (Trouble.EMPTY, 0)),
        (" \n\n", (Trouble.EMPTY, 0)),
        ("question,answer\n", (Trouble.EMPTY, 0)),
        ("q,a\nx,y\n", (Trouble.NO_COLUMNS, 1)),
        ('question,"answer\nof staff"\nx,y\n', (Trouble.NO_COLUMNS, 1)),
        ('[{"question": "a", "answer": "b"}]', (Trouble.NO_COLUMNS, 1)),
        ('question,answer\na,"never closed\n\n', (Trouble.BROKEN_CSV, 3)),
        ('question,answer\na,"1" 2\n', (Trouble.BROKEN_CSV, 2)),
    ],
)
def test_what_can_not_be_read_is_refused_with_its_place(content, said):
    assert trouble(content) == said


def test_too_many_rows_are_refused_and_not_cut(monkeypatch):
    monkeypatch.setattr(import_file, "MAX_ROWS", 2)
    line = json.dumps({"question": "a", "answer": "b"}) + "\n"
    assert len(texts(line * 2)) == 2
    assert trouble(line * 3) == (Trouble.TOO_MANY_ROWS, 3)


def test_a_very_long_cell_is_a_rows_trouble():
    assert texts(f"question,answer\na,{'x' * 300_000}\n") == [("a", "x" * 300_000)]
