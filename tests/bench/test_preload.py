"""The measurements of reading ahead still run, and the page gets its table. Numbers of a small run mean nothing."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from inference.models.tiny import write_tiny_model
from tests.bench.preload import report
from tests.bench.preload.__main__ import PAGE
from tests.bench.preload.crowd import AT_ONCE, Crowd, Sample, has_text
from tests.bench.preload.report import Cell
from tests.bench.preload.texts import conversation
from tests.bench.web.clients import Door


def cell(ahead: str, load: float, ttft_s: float, others_s: float, warmed: int = 0, used: int = 0) -> Cell:
    return Cell(ahead, load, [ttft_s] * 3, [others_s] * 20, 300, 200, warmed, used)


CELLS = [
    cell("off", 0.0, 1.0, 0.1),
    cell("on open", 0.0, 0.3, 0.1, 1000, 800),
    cell("on type", 0.0, 0.2, 0.1, 1000, 500),
    cell("off", 0.9, 2.0, 0.20),
    cell("on open", 0.9, 1.9, 0.22, 100, 100),
    cell("on type", 0.9, 1.9, 0.20, 100, 100),
]


def test_the_aims_say_what_was_reached_and_what_was_missed() -> None:
    ttft, on_open, on_type, wasted = report.aims(CELLS)
    assert "30% (aim: at most 40%, reached)" in ttft
    assert "110% (aim: at most 105%, missed)" in on_open
    assert "100% (aim: at most 105%, reached)" in on_type
    assert "32% (aim: at most 30%, missed)" in wasted


def test_the_page_gets_its_table_and_keeps_its_words(tmp_path: Path) -> None:
    page, figures = tmp_path / "preloading.md", tmp_path / "preloading.json"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    report.write(CELLS, "a machine", page, figures)
    text = page.read_text(encoding="utf-8")
    assert "| 0% | on open | 300 | 300 | 3 | 67% | 100 | 20% |" in text
    assert "| 90% | off | 2000 | 2000 | 3 | 67% | 200 |  |" in text
    assert "## The rules" in text
    assert len(json.loads(figures.read_text())["cells"]) == len(CELLS)


def test_conversations_have_nothing_in_common() -> None:
    chance = random.Random(1)
    first, second = (conversation(1500, chance)["messages"] for _ in range(2))
    assert len(first) == 12
    assert first[0]["text"].split()[:12] != second[0]["text"].split()[:12]
    assert [turn["parent"] for turn in first[:3]] == [None, 1, 2]


async def test_a_slow_site_is_not_taken_for_a_faster_one() -> None:
    """Or the load is more than the site can carry, and nobody's answer comes any more."""
    answer_s = 0.3

    async def answered(_: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(answer_s)
        return httpx2.Response(200)

    crowd = Crowd([Door("http://site", "key")] * AT_ONCE, random.Random(1), "model")
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answered)) as client:
        assert await crowd.most_per_s(client, answer_s / 10) <= AT_ONCE / answer_s


async def test_refusals_are_not_taken_for_answers() -> None:
    crowd = Crowd([Door("http://site", "key")] * AT_ONCE, random.Random(1), "not served")
    refusing = httpx2.MockTransport(lambda _: httpx2.Response(404))
    async with httpx2.AsyncClient(transport=refusing) as client:
        with pytest.raises(RuntimeError, match="were refused"):
            await crowd.most_per_s(client, 0.01)


def test_what_is_told_before_any_word_is_no_first_text() -> None:
    begun = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}'
    said = 'data: {"choices":[{"index":0,"delta":{"content":"The"}}]}'
    ended = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}'
    lines = [begun, said, ended, 'data: {"choices":[],"usage":{}}', "data: [DONE]", "", ": keep-alive"]
    assert [has_text(line) for line in lines] == [False, True, False, False, False, False, False]


def test_an_answer_counts_for_the_visit_in_which_it_was_asked_for() -> None:
    crowd = Crowd([], random.Random(1), "model", [Sample(1.0, 9.0), Sample(3.0, 0.1), Sample(5.0, 0.2)])
    assert crowd.ttfts_s([(0.0, 3.0), (4.0, 6.0)]) == [9.0, 0.2]


@pytest.mark.slow
def test_every_figure_can_be_measured(tmp_path: Path, on_these_servers: dict[str, str]) -> None:
    model = write_tiny_model(tmp_path / "tiny")  # the trial model would take minutes for the same
    command = [sys.executable, "-m", "tests.bench.preload", "--quick", "--model", str(model)]
    done = subprocess.run(command, env=on_these_servers, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = [f"| {load}% | {ahead} |" for load in (0, 50) for ahead in ("off", "on open", "on type")]
    assert [row for row in wanted if row not in done.stdout] == []
