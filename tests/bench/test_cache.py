"""The measurements of the cache still run, on a small table beside a scripted engine. Their numbers mean nothing."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from inference.types import EngineInfo
from semcache.text import guard
from semcache.text.normalize import canonical
from tests.bench.cache import engine, report
from tests.bench.cache.__main__ import DOCS, _measure
from tests.bench.cache.measure import Figure
from tests.bench.cache.results import Results
from tests.bench.cache.table import NUM_REAL, kinds, letters, vectors_of

EMPTY_PAGE = "<!-- table: make bench-cache -->\n<!-- end of table -->\n"
QUICK = [sys.executable, "-m", "tests.bench.cache", "--quick"]
KINDS = kinds(10_000, "embedder-1", 384)


@pytest.mark.slow
def test_every_figure_can_be_measured_and_the_page_gets_its_table(tmp_path):
    file, page = tmp_path / "benchmarks.json", tmp_path / "benchmarks.md"
    page.write_text((DOCS / "benchmarks.md").read_text())
    done = subprocess.run([*QUICK, "--json", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    measured = json.loads(file.read_text())
    figures = {figure["what"]: figure for figure in measured["figures"]}
    ways = [f"{way}, {kind.name}, {state}" for state in ("idle", "4 streams") for kind in KINDS
            for way in ("exact", "semantic", "verified")]  # fmt: skip
    # A scripted engine's vectors mean nothing: who finds a rewording is told by the real ones only.
    assert [figures[way]["facts"]["hits %"] for way in ways if way.startswith("exact")] == [100] * 4
    assert [way for way in figures if "," in way] == ways
    cleaned = [
        figure["facts"]["deleted rows"] for figure in figures.values() if "deleted rows" in figure["facts"]
    ]
    assert len(cleaned) == 2 and min(cleaned) > 0
    assert {"insert", "5 churns"} < set(figures)
    assert page.read_text().count("\n| 400 |") == len(figures)


@pytest.mark.slow
def test_what_time_was_too_short_for_is_said_loudly(tmp_path):
    file = tmp_path / "benchmarks.json"
    file.with_suffix(".md").write_text(EMPTY_PAGE)
    command = [*QUICK, "--limit-s", "0", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "NOT MEASURED: what follows 'exact, private, idle' at 400 entries" in done.stdout
    assert "Not measured: what follows" in file.with_suffix(".md").read_text()


@pytest.mark.slow
def test_a_run_that_is_told_to_end_takes_its_servers_and_its_engine_along():
    with subprocess.Popen(QUICK, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout is not None
        assert any("idle" in line for line in run.stdout)
        below = descendants(run.pid)
        assert len(below) >= 4
        run.send_signal(signal.SIGTERM)
        run.stdout.read()
    assert run.returncode == 1
    assert [pid for pid in below if Path(f"/proc/{pid}").exists()] == []


def descendants(pid: int) -> list[int]:
    below = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            below += [child, *descendants(child)]
    return below


def test_without_a_verifier_the_run_goes_on_and_says_what_is_missing(capsys):
    lane = engine.Engine(Silent(), "talk")
    with asyncio.Runner() as runner:
        options = argparse.Namespace(sizes=(), limit_s=60, quick=True, lookups=1)
        _measure(options, lane, runner, Results("two cores", None))
    assert "NOT MEASURED: verified look-ups" in capsys.readouterr().out


class Silent:
    """An engine without a verifier."""

    async def info(self) -> EngineInfo:
        return EngineInfo(
            "e",
            "m",
            "r",
            "t",
            100,
            100,
            "fp32",
            "cpu",
            "",
            0,
            1,
            is_trial_model=False,
            default_temperature=0.0,
        )


FIGURE = Figure(1000, "exact", [float(number) for number in range(1, 101)], {"hits %": 99.0})


def test_a_figure_is_shown_with_its_quantiles_and_facts():
    words = "1000 exact p50 51.00 ms p95 96.00 ms hits % 99.0"
    assert report.line(FIGURE).split() == words.split()
    told = json.loads(report.as_json([FIGURE], "two cores", []))
    assert told["machine"] == "two cores"
    assert told["figures"] == [
        {
            "rows": 1000,
            "what": "exact",
            "p50_ms": 51.0,
            "p95_ms": 96.0,
            "count": 100,
            "facts": {"hits %": 99.0},
        }
    ]


@pytest.mark.parametrize(
    ("rows", "what", "p95", "said"),
    [
        (100_000, "exact, private, idle", 3.0, "3, reached"),
        (100_000, "verified, public, idle", 60.1, "60, **not reached**"),
        (100_000, "semantic, public, 4 streams", 1.0, ""),
        (10_000, "exact, private, idle", 1.0, ""),
        (100_000, "insert", 1.0, ""),
    ],
)
def test_an_aim_is_compared_where_it_holds(rows, what, p95, said):
    measured = {"machine": "m", "missing": [], "figures": [report.as_values(Figure(rows, what, [p95]))]}
    assert report.table(measured).splitlines()[2].split(" | ")[4] == said


def test_a_stopped_run_keeps_the_sizes_that_it_finished(tmp_path):
    file, page = tmp_path / "benchmarks.json", tmp_path / "benchmarks.md"
    page.write_text(EMPTY_PAGE)
    results = Results("two cores", file)
    results.add(FIGURE)
    assert not file.exists(), "the figures of an earlier run stay until a size is whole"
    results.write(ahead="10,000 entries and what follows, because the run was stopped")
    results.add(Figure(10_000, "exact", [1.0]))
    assert [figure["rows"] for figure in json.loads(file.read_text())["figures"]] == [1000]
    assert "Not measured: 10,000 entries and what follows" in page.read_text()
    results.write()
    assert [figure["rows"] for figure in json.loads(file.read_text())["figures"]] == [1000, 10_000]
    assert "Not measured" not in page.read_text()


def test_made_up_vectors_lie_around_the_real_ones_as_those_of_an_encoder_do():
    real = np.random.default_rng(1).standard_normal((3, 384))
    real /= np.linalg.norm(real, axis=1, keepdims=True)
    vectors = np.array(list(vectors_of(range(9), real)))
    np.testing.assert_array_equal(vectors[:3], real)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
    np.testing.assert_allclose((vectors[3:] * real[[0, 1, 2] * 2]).sum(axis=1), 0.7, atol=0.07)
    assert len(np.unique(vectors, axis=0)) == 9


def test_questions_differ_and_an_owner_has_one_percent():
    private, public = KINDS
    assert len({letters(number) for number in range(50_000)}) == 50_000
    assert len({private.question(number).text for number in range(5000)}) == 5000
    assert len({private.question(number).owner for number in range(5000)}) == 100
    assert len({public.question(number).owner for number in range(5000)}) == 1


def test_the_guard_lets_every_rewording_through_that_is_asked():
    for kind in KINDS:
        for number in range(NUM_REAL):
            stored, asked = (canonical(kind.question(number, is_alike=alike).text) for alike in (False, True))
            assert stored != asked and guard.may_serve(guard.verdicts(stored, asked)), asked
