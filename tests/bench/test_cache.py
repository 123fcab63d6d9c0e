"""The measurements of the cache still run, on a small table. Their numbers mean nothing here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.bench.cache.__main__ import as_json, line
from tests.bench.cache.measure import Figure
from tests.bench.cache.table import kinds, letters


@pytest.mark.slow
def test_every_figure_can_be_measured_and_every_look_up_hits(tmp_path):
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.bench.cache", "--quick", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = {figure["what"]: figure for figure in json.loads(file.read_text())}
    assert [figure["hits %"] for figure in figures.values() if "hits %" in figure] == [100] * 6
    cleaned = [figure["deleted rows"] for figure in figures.values() if "deleted rows" in figure]
    assert len(cleaned) == 2 and min(cleaned) > 0
    assert {"insert", "5 churns"} < set(figures)
    assert len(done.stdout.splitlines()) == 2 + len(figures)


def test_a_figure_is_shown_with_its_quantiles_and_facts():
    figure = Figure(1000, "exact", [float(number) for number in range(1, 101)], {"hits %": 99.0})
    assert line(figure).split() == [
        "1000",
        "exact",
        "p50",
        "51.00",
        "ms",
        "p95",
        "96.00",
        "ms",
        "hits",
        "%",
        "99.0",
    ]
    (told,) = json.loads(as_json([figure]))
    assert (told["p50_ms"], told["p95_ms"], told["count"], told["hits %"]) == (51.0, 96.0, 100, 99.0)


def test_questions_differ_in_one_word_and_an_owner_has_one_percent():
    private, public = kinds(10_000)
    assert len({letters(number) for number in range(50_000)}) == 50_000
    assert len({private.question(number).owner for number in range(5000)}) == 100
    assert len({public.question(number).owner for number in range(5000)}) == 1
