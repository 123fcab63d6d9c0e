"""The line "as shipped" of the evaluation is what a new rule serves, decided by the product's own judge."""

from __future__ import annotations

import numpy as np

from semcache.evaluation import trials
from semcache.evaluation.metrics import NEVER
from semcache.evaluation.sets import Labelled, Pair
from semcache.evaluation.shipped import RULE
from semcache.models import CacheRule
from semcache.rules.rulebook import as_value


def alike(texts):
    return np.ones((len(texts), 1), dtype=np.float32)


def test_the_thresholds_are_those_of_a_new_rule():
    new = as_value(CacheRule(id=1, name="new"))
    assert (RULE.accept_similarity, RULE.verify_similarity) == (new.accept_similarity, new.verify_similarity)


def test_pairs_are_served_as_the_judge_serves_them():
    pairs = [
        Pair("red door", "red door", True, "the guard finds nothing"),
        Pair("red door", "red gate", True, "the verifier says yes"),
        Pair("red door", "red wall", False, "the verifier says no"),
        Pair("2 red doors", "3 red doors", False, "numbers differ"),
    ]
    scores = {"red gate": 0.95, "red wall": 0.2}
    found = trials.of_pairs(pairs, alike, lambda asked: [scores.get(second, 1.0) for _, second in asked])
    assert [trial.score for trial in found[trials.SHIPPED]] == [1.0, 1.0, -NEVER, -NEVER]
    without = trials.of_pairs(pairs, alike)
    assert [trial.score for trial in without[trials.SHIPPED]] == [1.0, -NEVER, -NEVER, -NEVER]


def test_an_intent_gets_the_answer_that_the_nearest_questions_vote_for():
    stored = [Labelled(f"pay {letter} bill", "pay") for letter in "abcdefgh"]
    (trial,) = trials.of_intents(stored, [Labelled("settle what I owe", "pay")], alike)[trials.SHIPPED]
    assert (trial.score, trial.is_right) == (1.0, True)
