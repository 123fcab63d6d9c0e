"""The measurement of speculation still runs, and the page has a place for its table. No tiny model tells a speed."""

from __future__ import annotations

import re

import pytest
import torch

from inference.core.messages import SamplingSpec
from inference.models.tiny import write_tiny_model
from tests.bench.pages import put_table
from tests.bench.speculation.__main__ import PAGE, Measured, Task, main, num_others, row


def test_every_task_is_measured_with_every_setting(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)  # it would last
    assert (
        main(["--quick", "--threads", "1", "--model", str(write_tiny_model(tmp_path / "tiny", "llama"))]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if re.match(r"\| (quote|edit|summarise|free.*) \| [12] \|", line)]
    assert len(rows) == 10
    assert "of 20 answers" in lines[-1].lower()


def test_a_row_tells_the_gain_against_the_run_beside_it() -> None:
    plain = [Measured(100, 1.0), Measured(100, 2.0), Measured(100, 4.0)]
    auto = [Measured(100, 0.5, 8, 6), Measured(100, 1.0), Measured(100, 3.0)]
    task = Task("quote", [], [], SamplingSpec())
    line = row(task, 4, {"off": plain, "auto": auto, "always": plain})
    assert line == "| quote | 4 | 50 | 2.00x | 75% of 8 | 1.00x | none |"


def test_answers_that_differ_are_counted() -> None:
    assert num_others([[1, 2], [3]], [[1, 2], [4]]) == 1


def test_the_page_has_a_place_for_the_table(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    put_table(page, "make bench-speculation", "| new |")
    assert "| new |" in page.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="place"):
        put_table(page, "make another", "| new |")
