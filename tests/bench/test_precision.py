"""The bench of precisions still runs, with a tiny model and small sizes, and tells what is over its limits."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch

from inference.models.loader import load_served
from tests.bench.precision.__main__ import PAGE
from tests.bench.precision.quality import PROMPTS, Quality, answered, compare, logits, prompts
from tests.bench.precision.report import Row, broken_limits, write
from tests.bench.precision.served import KV_MIB, QUICK, Served, memory_limit_mib, served


def _row(name: str = "bf16", memory_mib: float = 500.0, cold_start_s: float = 2.0) -> Row:
    served_so = Served(100.0, 900.0, 1500.0, memory_mib, cold_start_s)
    return Row(name, 269_000_000, Quality(1600, 0.98, 0.2, 0.001), served_so)


def test_there_are_a_hundred_questions_half_of_them_chinese() -> None:
    lines = PROMPTS.read_text(encoding="utf-8").splitlines()
    assert len(set(lines)) == len(lines) == 100
    assert sum(any("\u4e00" <= letter <= "\u9fff" for letter in line) for line in lines) == 50


def test_a_model_agrees_with_itself_and_less_with_a_coarser_one(tiny: Path) -> None:
    exact, coarse = (load_served(tiny, "fp32", "cpu", "auto", weights) for weights in ("same", "int8"))
    answers = answered(exact, prompts(tiny, QUICK.prompts), QUICK.answers)
    itself, other = compare(exact, exact, answers), compare(exact, coarse, answers)
    assert itself == Quality(QUICK.prompts * QUICK.answers, 1.0, 0.0, 0.0)
    assert other.mean_kl > 0
    assert other.worst_gap >= 0


def test_answers_are_what_the_compared_network_would_say(tiny: Path) -> None:
    exact = load_served(tiny, "fp32", "cpu")
    [answer] = answered(exact, prompts(tiny, 1), QUICK.answers)
    found = logits(exact, answer.ids[:-1], QUICK.answers).argmax(-1)
    assert torch.equal(found, torch.tensor(answer.ids[answer.num_prompt :]))


def test_the_engine_is_measured_through_its_door(tiny: Path) -> None:
    figures = served(tiny, "fp32", "int8", QUICK)
    assert min(figures.decode_1, figures.decode_16, figures.prefill, figures.memory_mib) > 0


def test_a_size_or_a_start_over_its_limit_is_told() -> None:
    limit = memory_limit_mib(269_000_000)
    assert limit == pytest.approx(1.3 * (269_000_000 / 2**20 + KV_MIB + 300))
    rows = [_row(), _row("large", memory_mib=limit + 1), _row("slow", cold_start_s=3.1)]
    assert [line.partition(":")[0] for line in broken_limits(rows)] == ["large", "slow"]


def test_table_and_picture_are_written_and_the_words_of_the_page_stay(tmp_path: Path) -> None:
    page, figures, picture = (tmp_path / name for name in ("page.md", "figures.json", "picture.svg"))
    page.write_text(PAGE.read_text())
    write([_row("fp32"), _row("bf16")], "here", page, figures, picture)
    text = page.read_text()
    assert "| bf16 | 269 | 98.0% | 0.20 | 0.0010 | 100 | 900 | 1500 |" in text
    assert text.partition("<!-- table")[0] == PAGE.read_text().partition("<!-- table")[0]
    assert len(json.loads(figures.read_text())["rows"]) == 2
    ET.parse(picture)
