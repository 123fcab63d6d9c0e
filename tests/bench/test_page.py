"""The measurements of the chat page still run, and their table has its place. Numbers of a small run mean nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.page import report
from tests.bench.page.__main__ import PAGE
from tests.bench.page.chat import long_chat
from tests.bench.page.report import Figure


@pytest.mark.slow
@pytest.mark.browser
def test_every_figure_can_be_measured(on_these_servers: dict[str, str]) -> None:
    command = [sys.executable, "-m", "tests.bench.page", "--quick"]
    done = subprocess.run(command, env=on_these_servers, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = ("is opened, median", "its end is loaded", "all of it is loaded", "four times the answer")
    assert [what for what in wanted if what not in done.stdout] == []


def test_a_long_chat_has_both_sides_in_turn() -> None:
    (talk,) = long_chat(6)["conversations"]
    assert [message["role"] for message in talk["messages"]] == ["user", "assistant"] * 3
    assert [message["parent"] for message in talk["messages"]] == [None, 1, 2, 3, 4, 5]


def test_the_page_gets_its_table_and_keeps_its_words(tmp_path: Path) -> None:
    page = tmp_path / "page-benchmarks.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    figures = [
        Figure("opened", 900.0, "ms", 1000.0),
        Figure("a key", 120.0, "ms", 100.0),
        Figure("tasks", 3, "tasks"),
    ]
    report.write(figures, "a machine", page)
    text = page.read_text(encoding="utf-8")
    assert "| opened | 900.0 ms | within 1,000 ms |" in text
    assert "| a key | 120.0 ms | beyond 100 ms |" in text
    assert "| tasks | 3.0 tasks |  |" in text
    assert "## What is measured" in text
