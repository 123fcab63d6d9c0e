"""The measurements of the web process still run, and lags are what they say. Numbers of a small run mean nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatsite.chat.pace import Pace
from inference.testing.stamps import TICK_S, stamp_of, times_of
from tests.bench.web import report
from tests.bench.web.__main__ import PAGE
from tests.bench.web.lags import Answer, Arrival, lags_s, quantile
from tests.bench.web.report import Figure

PACE = Pace(max_tokens=4, max_wait_s=0.05)
LONGEST = UUID(int=0)  # of all answers this one waits longest


@given(made=st.lists(st.floats(1000.0, 1020.0), min_size=1, max_size=8))
def test_a_stamp_tells_the_time_to_the_tick(made: list[float]) -> None:
    text = b"".join(map(stamp_of, made)).decode()
    assert times_of(text, near_s=1020.5) == pytest.approx(made, abs=1.01 * TICK_S)


def test_the_wait_for_company_is_no_lag() -> None:
    arrivals = [
        arrival(100.010, 100.0),  # the first leaves at once
        arrival(100.260, 100.2),  # alone, so it waited 50 ms
        arrival(100.320, 100.3, 100.301, 100.302, 100.303),  # four: the fourth sent them
        arrival(100.470, 100.4, 100.44),  # two that came within the wait of the first
        arrival(100.9, 100.5),  # sent by the end, whose time nobody knows
    ]
    lags = lags_s(Answer(LONGEST, arrivals), PACE, between_s=(0.0, 1000.0))
    assert lags == pytest.approx([0.010, 0.010, 0.017, 0.020], abs=2 * TICK_S)


def test_what_waits_less_has_less_taken_off() -> None:
    arrivals = [arrival(100.010, 100.0), arrival(100.260, 100.2), arrival(100.9, 100.5)]
    lags = lags_s(Answer(UUID(int=500), arrivals), PACE, between_s=(0.0, 1000.0))
    assert lags == pytest.approx([0.010, 0.0225], abs=2 * TICK_S)


def test_only_what_was_due_while_all_streams_ran_counts() -> None:
    arrivals = [
        arrival(100.010, 100.0),
        arrival(100.270, 100.2),
        arrival(100.480, 100.4),
        arrival(100.7, 100.6),
    ]
    assert lags_s(Answer(LONGEST, arrivals), PACE, (100.2, 100.45)) == pytest.approx([0.020], abs=2 * TICK_S)


def test_a_quantile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [quantile(values, share) for share in (0.01, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert quantile([7.0], 0.99) == 7


@pytest.mark.slow
def test_every_figure_can_be_measured(on_these_servers: dict[str, str]) -> None:
    command = [sys.executable, "-m", "tests.bench.web", "--quick", "--streams", "3", "--sockets", "5"]
    done = subprocess.run(command, env=on_these_servers, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = (
        "5 sockets and 5 streams",
        "SSE: 3 streams",
        "WebSocket: 3 streams",
        "both at half the rate: 6 streams",
        "both: 6 streams",
    )
    assert [what for what in wanted if what not in done.stdout] == []


def test_the_page_gets_its_table_and_keeps_its_words(tmp_path: Path) -> None:
    page = tmp_path / "web-benchmarks.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    report.write([Figure("SSE: 2 streams", [0.004, 0.006], {"growth MiB": 2.0})], "a machine", page)
    text = page.read_text(encoding="utf-8")
    assert "| SSE: 2 streams | 2 | 4.0 | 6.0 | 6.0 | growth MiB 2 |" in text
    assert "The aims: p99" in text


def arrival(at_s: float, *made_s: float) -> Arrival:
    return Arrival(at_s, b"".join(map(stamp_of, made_s)).decode())
