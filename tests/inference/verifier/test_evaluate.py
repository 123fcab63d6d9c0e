from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from inference.verifier.evaluate import RowError, evaluate
from inference.verifier.figures import Figures, fit_scale, served


def by_length(pairs: list[tuple[str, str]]) -> np.ndarray:
    return np.array([1 / (1 + abs(len(first) - len(second))) for first, second in pairs], dtype=np.float32)


def write(file: Path, *rows: dict) -> Path:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def test_scores_are_lines_of_both_texts_and_a_score_in_the_order_of_the_rows(tmp_path: Path) -> None:
    first = write(tmp_path / "own.jsonl", {"first": "你好", "second": "您好", "label": "paraphrase"})
    second = write(tmp_path / "fow.jsonl", {"a": "x", "b": "xyz", "same_answer": False})
    out = tmp_path / "scores.jsonl"
    assert evaluate([first, second], out, by_length) == {}  # one label only
    assert [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] == [
        {"first": "你好", "second": "您好", "score": 1.0},
        {"first": "x", "second": "xyz", "score": 0.333333},
    ]


def test_labelled_files_get_figures(tmp_path: Path) -> None:
    rows = [{"first": "a", "second": "b", "same": True}, {"first": "a", "second": "bcd", "same": False}]
    figures = evaluate([write(tmp_path / "pairs.jsonl", *rows)], tmp_path / "out", by_length)
    assert figures["pairs.jsonl"].auc == 1.0
    rows.append({"first": "no label", "second": "here"})
    assert evaluate([write(tmp_path / "pairs.jsonl", *rows)], tmp_path / "out", by_length) == {}


@pytest.mark.parametrize("line", ["{", "[]", '{"a": "x"}', '{"a": [], "b": "x"}', "7"])
def test_what_is_no_pair_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.jsonl").write_text('{"a": "x", "b": "y"}\n' + line)
    with pytest.raises(RowError, match=r"bad.jsonl:2: no pair"):
        evaluate([tmp_path / "bad.jsonl"], tmp_path / "out", by_length)


def test_what_is_served_lets_no_more_traps_through_than_allowed() -> None:
    wrong = np.array([0.9, 0.8, *[0.1] * 98])
    right = np.array([0.95, 0.85, 0.7, 0.05])
    assert served(right, wrong, 0.0) == 0.25
    assert served(right, wrong, 0.01) == 0.5
    assert served(right, wrong, 0.02) == 0.75
    assert served(np.array([0.1]), np.array([0.1, 0.1]), 0.5) == 0.0  # ties are not served
    assert served(right, wrong, 1.0) == 1.0


def test_calibration_finds_the_scale_that_was_lost() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=20_000) * 2
    same = rng.random(20_000) < 1 / (1 + np.exp(-logits))
    factor, offset = fit_scale(logits * 4 + 3, same, np.full(20_000, 1 / 20_000) * 3)
    assert factor == pytest.approx(0.25, abs=0.02)
    assert offset == pytest.approx(-0.75, abs=0.06)
    scores = 1 / (1 + np.exp(-(logits * 4 + 3) * factor - offset))
    assert Figures.of(scores, same).calibration < 0.01
