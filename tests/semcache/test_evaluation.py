"""The evaluation counts what it says: intervals, curves, thresholds chosen on one half and applied to the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from semcache.evaluation import picture, report, sets, trials, vectors
from semcache.evaluation.figures import BOUNDS, PAIRS, Halves, figures
from semcache.evaluation.metrics import (
    NEVER,
    Rate,
    Totals,
    Trial,
    at,
    best_at,
    curve,
    of_pairs,
    of_requests,
    wilson,
)
from semcache.evaluation.sets import Labelled, Pair, Talks

scores = st.one_of(st.just(-NEVER), st.sampled_from([0.5, 0.9, 0.95, 1.0]), st.floats(-1, 1))
some_trials = st.lists(st.builds(Trial, scores, st.booleans()), max_size=40)


def embed(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors: each "~" in a text takes 0.1 from its similarity with a text that has none."""
    cosines = [1.0 - 0.1 * text.count("~") for text in texts]
    return np.array([[cosine, np.sqrt(1 - cosine**2)] for cosine in cosines], dtype=np.float32)


@pytest.mark.parametrize(
    ("num", "total", "low", "high"),
    [(0, 155, 0.0, 0.0242), (155, 155, 0.9758, 1.0), (10, 100, 0.0552, 0.1744), (50, 100, 0.4038, 0.5962)],
)
def test_the_interval_is_wilsons(num, total, low, high):
    assert wilson(num, total) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 10_000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_the_interval_holds_the_share_and_stays_between_none_and_all(counts):
    num, total = counts
    low, high = wilson(num, total)
    assert 0.0 <= low <= num / total <= high <= 1.0
    assert high > low


def test_nothing_is_known_of_no_questions():
    assert Rate(0, 0).interval == (0.0, 1.0)


@given(some_trials)
def test_a_looser_threshold_never_serves_less(asked):
    points = curve(asked, of_pairs(asked))
    assert (points[0].served.num, points[0].wrong.num) == (0, 0)
    for stricter, looser in pairwise(points):
        assert stricter.threshold > looser.threshold
        assert stricter.served.num <= looser.served.num
        assert stricter.wrong.num <= looser.wrong.num


@given(some_trials)
def test_a_point_of_the_curve_is_what_its_threshold_gives(asked):
    """Equal scores are served together: a curve that cuts between them promises what no threshold can do."""
    totals = of_requests(asked)
    assert all(at(point.threshold, asked, totals) == point for point in curve(asked, totals))


@given(some_trials, st.sampled_from(BOUNDS))
def test_the_best_point_keeps_the_bound_and_no_other_that_keeps_it_serves_more(asked, bound):
    points = curve(asked, of_pairs(asked))
    best = best_at(bound, points)
    assert best.wrong.share <= bound
    assert all(point.served.num <= best.served.num for point in points if point.wrong.share <= bound)


def test_what_nothing_may_serve_is_served_at_no_threshold():
    point = at(-1.0, [Trial(-NEVER, is_right=True)], Totals(1, 1))
    assert point.served.num == 0


def test_thresholds_are_chosen_on_one_half_and_applied_to_the_other():
    tuned = {"cosine": [Trial(0.9, True), Trial(0.8, False)]}
    test = {"cosine": [Trial(0.85, True), Trial(0.95, False)]}
    lines = figures(Halves("set", tuned, test, PAIRS)).lines
    chosen = next(line.point for line in lines if line.way == "cosine" and line.bound == 0.0)
    assert chosen.threshold == 0.9
    assert (chosen.served.num, chosen.wrong.num) == (0, 1)
    seen_afterwards = next(line.point for line in lines if "afterwards" in line.way and line.bound == 0.0)
    assert seen_afterwards.wrong.num == 0


def test_the_guard_takes_a_pair_out_at_every_threshold():
    pairs = [Pair("red door", "red door", True, "same"), Pair("red door", "blue door", False, "trap")]
    found = trials.of_pairs(pairs, embed)
    assert [trial.score for trial in found["guard"]] == [1.0, -NEVER]
    assert [trial.score for trial in found["cosine"]] == [1.0, 1.0]


def test_a_verifier_overrules_missing_words_and_nothing_else():
    pairs = [
        Pair("red door", "red door", True, "guard finds nothing"),
        Pair("red door", "red gate", True, "a word has no equal"),
        Pair("2 red doors", "3 red doors", False, "numbers differ"),
    ]
    found = trials.of_pairs(pairs, lambda texts: np.ones((len(texts), 1)), lambda asked: [0.2, 0.7, 0.9])
    assert [trial.score for trial in found[trials.VERIFIED]] == [1.0, 0.7, -NEVER]


def test_an_intent_is_answered_by_the_nearest_question_that_the_guard_lets_through():
    stored = [Labelled(f"pay {letter} bill", letter) for letter in "abcdefg"] + [
        Labelled("stop it ~", "stop")
    ]
    asked = [Labelled("stop it", "stop"), Labelled("sing", "oos")]
    found = trials.of_intents(stored, asked, embed)
    assert [(trial.score, trial.is_right) for trial in found["guard"]] == [
        (pytest.approx(0.9), True),
        (-NEVER, False),
    ]
    assert [trial.is_right for trial in found["cosine"]] == [False, False]


def test_an_intent_whose_nearest_questions_agree_is_answered_without_the_same_words():
    stored = [Labelled(f"pay {letter} bill", "pay") for letter in "abcdefgh"]
    asked = [Labelled("settle what I owe", "pay"), Labelled("settle 3 debts", "pay")]
    found = trials.of_intents(stored, asked, embed)
    assert [trial.score for trial in found["guard"]] == [pytest.approx(1.05), -NEVER]


def test_a_question_out_of_scope_is_not_stored_and_any_answer_to_it_is_wrong():
    stored = [Labelled("sing ~~~~~~~~~", "oos")] + [Labelled(f"pay {letter}", "pay") for letter in "abcdefgh"]
    (trial,) = trials.of_intents(stored, [Labelled("sing ~~~~~~~~~", "oos")], embed)["cosine"]
    assert not trial.is_right
    assert trial.score < 0.5


def talks(first: list[str], second: list[str], *, is_same: bool) -> Talks:
    return Talks(first, second, is_same, "same" if is_same else "trap")


def test_a_conversation_is_served_by_all_that_its_answer_hangs_on():
    oslo, rome = (
        ["I am in Oslo", "Welcome", "how long is the trip?"],
        ["I am in Rome", "Welcome", "how long is the trip?"],
    )
    alone = "Which languages does Tunely support on Android tablets?"
    found = trials.of_conversations(
        [
            talks(oslo, rome, is_same=False),
            talks(oslo, ["Hello! I am in Oslo", "Welcome", "How long is the trip?"], is_same=True),
            talks(
                ["I am in Oslo", "Welcome", "yes please"],
                ["I am in Oslo", "Welcome", "yes please"],
                is_same=True,
            ),
            talks(["I am in Oslo", "Welcome", alone], ["Do fish sleep", "They do", alone], is_same=True),
        ],
        embed,
    )
    assert [trial.score for trial in found["cosine"]] == [1.0] * 4
    assert [trial.score for trial in found["product"]] == [-NEVER, 1.0, 1.0, 1.0]


def test_a_verifier_confirms_what_two_conversations_word_differently():
    cat = talks(
        ["flying with a cat", "Fine", "is that allowed?"],
        ["flying with a happy cat", "Fine", "is that allowed?"],
        is_same=True,
    )
    asked: list[tuple[str, str]] = []

    def verify(pairs):
        asked[:] = pairs
        return [0.7] * len(pairs)

    found = trials.of_conversations([cat], embed, verify)
    assert asked == [("flying with a cat", "flying with a happy cat")]
    assert [trial.score for trial in found["product"]] == [-NEVER]
    assert [trial.score for trial in found[trials.PRODUCT_VERIFIED]] == [0.7]


@pytest.mark.parametrize(
    ("rows", "num_rows"),
    [
        (lambda: sets.fow_pairs("dev") + sets.fow_pairs("test"), 600),
        (lambda: sets.conversations("dev") + sets.conversations("test"), 240),
        (sets.own_pairs, 600),
        (lambda: sets.paws_pairs("train") + sets.paws_pairs("test"), 1_940),
        (lambda: sets.intents("clinc150", "train") + sets.intents("clinc150", "test"), 20_598),
        (lambda: sets.intents("banking77", "train") + sets.intents("banking77", "test"), 13_077),
    ],
)
def test_every_set_is_whole(rows, num_rows):
    assert len(rows()) == num_rows


def test_no_question_of_the_test_half_chooses_a_threshold():
    dev, test = (
        {text for pair in sets.fow_pairs(half) for text in (pair.first, pair.second)}
        for half in ("dev", "test")
    )
    assert dev.isdisjoint(test)


def test_vectors_are_computed_once_and_anew_for_other_texts_or_another_encoder(tmp_path, monkeypatch):
    commands = []

    def run(command, *, input, **options):
        commands.append(command[:3])
        np.save(command[-1], np.ones((len(json.loads(input)), 2)))

    monkeypatch.setattr(vectors.subprocess, "run", run)
    kept = vectors.kept_in(tmp_path / "kept")
    assert kept(["a", "b"]).shape == (2, 2)
    assert kept(["a", "b"]).shape == (2, 2)
    assert len(commands) == 1
    kept(["a", "c"])
    monkeypatch.setenv("EMBED_MODEL", "another")
    kept(["a", "b"])
    assert len(commands) == 3


def test_table_json_and_picture_show_the_same_set():
    tuned = {"cosine": [Trial(0.9, True, "same"), Trial(0.8, False, "name & place")]}
    found = [figures(Halves("set <1>", tuned, tuned, PAIRS))]
    assert "| cosine | 0.0% | 0.900 | 100.0% (1/1;" in report.table(found)
    assert "| trap: name & place | 1 | 0 |" in report.table(found)
    json.dumps(report.as_json(found), allow_nan=False)
    drawn = ElementTree.fromstring(picture.svg(found))
    assert "set <1>" in [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "prefers-color-scheme: dark" in picture.svg(found)


def test_the_command_prints_and_writes_the_sets_that_were_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(vectors, "kept_in", lambda folder: lambda texts: np.ones((len(texts), 1)))
    call_command("cache_eval", "--set", "conversations", "--json", "--out", str(tmp_path))
    printed = json.loads(capsys.readouterr().out)
    assert [found["set"] for found in printed] == ["fow conversations"]
    assert json.loads((tmp_path / "cache-eval.json").read_text()) == printed
    assert (tmp_path / "cache-eval.svg").read_text().startswith("<svg")
