"""Two answers that say the same in other words agree; other numbers never do."""

from __future__ import annotations

import pytest

from semcache.text.agreement import agreement


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        ("In settings.", "in settings", 1.0, 1.0),
        ("Open the settings and choose login.", "Choose login in the settings.", 0.7, 0.95),
        ("It costs 12 euros a month.", "It costs 14 euros a month.", 0.0, 0.0),
        ("在设置里打开。", "在设置中打开", 0.8, 0.9),
        ("Paris", "Rain is wet.", 0.0, 0.0),
        ("42", "42", 1.0, 1.0),
        ("!", "", 0.0, 0.0),
    ],
)
def test_answers_agree_by_their_words_and_numbers(one, other, low, high):
    assert low <= agreement(one, other) <= high
    assert agreement(one, other) == agreement(other, one)
