"""Other caches' answers become lines beside ours: judged by the same rows, at the same bound, in the same table."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command

from semcache.evaluation import report, sets, vectors
from semcache.evaluation.figures import PAIRS, REQUESTS, Halves, figures
from semcache.evaluation.metrics import Trial
from semcache.evaluation.peers import compare
from semcache.evaluation.peers.compare import Asked, Half
from semcache.evaluation.sets import Labelled, Pair

TUNED = [Pair("a", "b", True, "same"), Pair("c", "d", False, "trap")]
TEST = [Pair("e", "f", True, "same"), Pair("g", "h", True, "same"), Pair("i", "j", False, "trap")]


def found(*served: tuple[int | None, float | None, bool]) -> list[dict]:
    return [
        {"place": place, "similarity": similarity, "is_served": shipped}
        for place, similarity, shipped in served
    ]


def peer(jobs: list[list[dict]]):
    """In place of the peers' process: it finds its jobs complete and answers as told."""

    def run(command: list[str], **named) -> None:
        folder = Path(command[-1])
        for number in range(len(jobs)):
            job = json.loads((folder / f"{number}.json").read_text())
            for side in ("stored", "asked"):
                assert len(np.load(folder / f"{number}.{side}.npy")) == len(job[side])
        (folder / "found.json").write_text(json.dumps({"Other 1.0": {"threshold": 0.8, "jobs": jobs}}))

    return run


def embed(texts) -> np.ndarray:
    return np.ones((len(texts), 2), dtype=np.float32)


def lines(monkeypatch, asked: Asked, *jobs: list[dict]) -> list[dict]:
    monkeypatch.setattr(compare.subprocess, "run", peer(list(jobs)))
    return compare.answered([asked], embed, Path("python"))[asked.name]


def pairs(rows) -> Half:
    return compare._pairs(rows)


def test_a_peer_is_shown_as_it_ships_and_at_the_threshold_of_the_tuning_half(monkeypatch):
    asked = Asked("set", pairs(TUNED), pairs(TEST), PAIRS)
    shipped, tuned = lines(
        monkeypatch,
        asked,
        found((0, 0.9, True), (0, 0.85, True)),
        found((0, 0.95, True), (0, 0.87, True), (0, 0.86, True)),
    )
    assert (shipped["way"], shipped["bound"], shipped["threshold"]) == ("Other 1.0, as shipped", None, 0.8)
    assert (shipped["served"], shipped["wrong"]) == ([2, 2], [1, 1])
    assert (tuned["way"], tuned["bound"], tuned["threshold"]) == ("Other 1.0", 0.02, 0.9)
    assert (tuned["served"], tuned["wrong"]) == ([1, 2], [0, 1])


def test_what_a_peer_did_not_find_is_served_nowhere_and_still_counts(monkeypatch):
    asked = Asked("set", pairs(TUNED), pairs(TEST), PAIRS)
    nothing = [(None, None, False)]
    for line in lines(monkeypatch, asked, found(*nothing * 2), found(*nothing * 3)):
        assert (line["served"], line["wrong"]) == ([0, 2], [0, 1])


def test_a_threshold_that_nothing_reaches_is_kept_as_none_and_shown_as_none(monkeypatch):
    asked = Asked("set", pairs(TUNED), pairs(TEST), PAIRS)
    found_traps = found((0, 0.9, True), (0, 0.95, True)), found(*[(0, 0.9, True)] * 3)
    tuned = json.loads(json.dumps(lines(monkeypatch, asked, *found_traps)))[1]
    assert tuned["threshold"] is None
    ours = figures(Halves("set", {"cosine": [Trial(0.9, True)]}, {"cosine": [Trial(0.9, True)]}, PAIRS))
    assert "| Other 1.0 | 2.0% | none | 0.0%" in report.table([compare.with_peers(ours, {"set": [tuned]})])


def test_an_intent_is_right_when_the_stored_question_found_has_it_and_out_of_scope_never(monkeypatch):
    stored = [Labelled("pay", "pay"), Labelled("tell a joke", "oos"), Labelled("stop", "stop")]
    asked = [Labelled("settle", "pay"), Labelled("end", "stop"), Labelled("sing", "oos")]
    half = compare._intents(stored, asked)
    assert list(half.stored) == ["pay", "stop"]
    shipped, _ = lines(
        monkeypatch,
        Asked("set", half, half, REQUESTS),
        *[found((0, 0.9, True), (1, 0.9, True), (0, 0.9, True))] * 2,
    )
    assert (shipped["served"], shipped["wrong"]) == ([2, 3], [1, 3])


def test_the_lines_stand_in_the_table_and_in_the_json_after_the_common_threshold():
    trials = {"cosine": [Trial(0.9, True), Trial(0.8, False)]}
    ours = figures(Halves("set", trials, trials, PAIRS))
    peers = {
        "set": [
            {
                "way": "Other 1.0, as shipped",
                "bound": None,
                "threshold": 0.8,
                "served": [1, 1],
                "wrong": [1, 1],
            }
        ],
        "another set": [],
    }
    merged = compare.with_peers(ours, peers)
    assert [line.way for line in merged.lines[:3]] == ["cosine at 0.92", "Other 1.0, as shipped", "cosine"]
    assert "| Other 1.0, as shipped |  | 0.800 | 100.0% (1/1; 20.7% to 100.0%)" in report.table([merged])
    assert report.as_json([merged])[0]["lines"][1]["wrong"]["num"] == 1
    assert compare.with_peers(ours, {}) == ours


@pytest.mark.parametrize("name", ["fow", "own", "paws", "conversations", "clinc150", "banking77"])
def test_the_rows_and_the_name_are_those_of_our_own_table(name, monkeypatch):
    """Lines are put together by the set's name, and vectors found again by the list they were made of."""
    from semcache.evaluation.runs import RUNS

    given: list[list[str]] = []

    def kept(texts) -> np.ndarray:
        given.append(list(texts))
        return np.ones((len(texts), 2), dtype=np.float32)

    for rows in ("fow_pairs", "own_pairs", "paws_pairs", "intents", "conversations"):
        whole = getattr(sets, rows)
        monkeypatch.setattr(sets, rows, lambda *args, whole=whole: whole(*args)[:30])
    assert RUNS[name](kept, None).name == compare.asked_of(name).name
    ours = {json.dumps(texts) for texts in given}
    given.clear()
    monkeypatch.setattr(compare.subprocess, "run", peer([found(*[(None, None, False)] * 30)] * 2))
    monkeypatch.setattr(compare, "_lines", lambda *args: [])
    compare.answered([compare.asked_of(name)], kept, Path("python"))
    assert {json.dumps(texts) for texts in given} <= ours


def test_the_command_prints_the_peers_lines(monkeypatch, tmp_path, capsys):
    peers = tmp_path / "peers.json"
    line = {
        "way": "Other 1.0, as shipped",
        "bound": None,
        "threshold": 0.8,
        "served": [9, 155],
        "wrong": [7, 145],
    }
    peers.write_text(json.dumps({"fow pairs": [line]}))
    monkeypatch.setattr(vectors, "kept_in", lambda folder: lambda texts: np.ones((len(texts), 1)))
    call_command("cache_eval", set=["fow"], peers=peers)
    assert "| Other 1.0, as shipped |  | 0.800 | 5.8% (9/155;" in capsys.readouterr().out


def test_sets_are_asked_one_after_the_other_and_keep_their_lines(monkeypatch, tmp_path):
    out = tmp_path / "peers.json"
    for name, title in (("fow", "fow pairs"), ("own", "own pairs, en and zh"), ("fow", "fow pairs")):
        lines = {title: [{"way": f"Other, asked for {name}"}]}
        monkeypatch.setattr(compare, "answered", lambda *args, lines=lines: lines)
        call_command("cache_peers", python=Path("python"), set=[name], out=out, stdout=io.StringIO())
    assert list(json.loads(out.read_text())) == ["fow pairs", "own pairs, en and zh"]
