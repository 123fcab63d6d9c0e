"""The estimate of the wrong share may be looked at after every check: rules past their limit are found, others left."""

from __future__ import annotations

import random

import pytest

from semcache.quality import budget, budget_estimate
from semcache.quality.budget_estimate import estimate, is_past

NUM_SEEDS = 1000
LIMIT = 0.01


def tightens_after(seed: int, wrong: float, check_share: float, num_requests: int) -> int | None:
    """How many answers a rule with this share of wrong ones serves by meaning until it is past its limit."""
    chance = random.Random(seed)
    num, num_wrong, num_right_in_a_row = 0, 0, 0
    for number in range(1, num_requests + 1):
        share = budget.share_checked(check_share, is_calm=num_right_in_a_row >= budget.CALM_AFTER)
        if chance.random() >= share:
            continue
        is_wrong = chance.random() < wrong
        num, num_wrong = num + 1, num_wrong + is_wrong
        num_right_in_a_row = 0 if is_wrong else num_right_in_a_row + 1
        if is_wrong and is_past(LIMIT, num, num_wrong):
            return number
    return None


def num_tightened(wrong: float, check_share: float, num_requests: int, num_seeds: int = NUM_SEEDS) -> int:
    ends = (tightens_after(seed, wrong, check_share, num_requests) for seed in range(num_seeds))
    return sum(end is not None for end in ends)


def test_a_fifth_wrong_and_a_tenth_checked_is_found_within_200_requests():
    """999 of these 1,000 seeds."""
    assert num_tightened(wrong=0.2, check_share=0.1, num_requests=200) >= 0.99 * NUM_SEEDS


@pytest.mark.parametrize("check_share", [0.02, 0.1, 1.0])
def test_half_the_limit_is_left_alone_for_5000_requests(check_share):
    """999 and more of these 1,000 seeds."""
    assert num_tightened(wrong=LIMIT / 2, check_share=check_share, num_requests=5000) <= 0.01 * NUM_SEEDS


def test_a_rule_just_within_its_limit_is_left_alone_as_often_as_is_promised():
    allowed = (1 - budget_estimate.CONFIDENCE) * NUM_SEEDS
    assert num_tightened(wrong=LIMIT, check_share=1.0, num_requests=2000) <= allowed


def test_without_denser_checks_too_few_would_be_found(monkeypatch):
    """A mutant."""
    monkeypatch.setattr(budget, "DENSER", 1)
    assert num_tightened(wrong=0.2, check_share=0.1, num_requests=200) < 0.99 * NUM_SEEDS


def test_an_interval_for_one_look_would_tighten_good_rules(monkeypatch):
    """A mutant: the lower end of a usual 95 % interval (Wilson), looked at after every check."""

    def is_past_at_one_look(limit: float, num: int, num_wrong: int) -> bool:
        share, z = num_wrong / num, 1.96
        half = z * (share * (1 - share) / num + z * z / (4 * num * num)) ** 0.5
        return (share + z * z / (2 * num) - half) / (1 + z * z / num) > limit

    monkeypatch.setitem(globals(), "is_past", is_past_at_one_look)
    assert num_tightened(wrong=LIMIT / 2, check_share=0.1, num_requests=5000, num_seeds=200) > 0.01 * 200


@pytest.mark.parametrize(("num", "num_wrong"), [(1, 0), (1, 1), (7, 3), (100, 1), (2500, 25), (50, 50)])
def test_what_is_past_is_what_the_shown_interval_leaves_out(num, num_wrong):
    found = estimate(num, num_wrong)
    assert 0 <= found.low <= found.share <= found.high <= 1
    for limit in (0.001, 0.01, 0.05, 0.2, 0.9):
        assert is_past(limit, num, num_wrong) == (found.low > limit)


def test_no_checks_say_nothing():
    assert (estimate(0, 0).low, estimate(0, 0).high) == (0.0, 1.0)
    assert not is_past(0.0, 0, 0)


def test_more_checks_make_the_interval_narrower():
    widths = [found.high - found.low for found in (estimate(100 * n, n) for n in (1, 10, 100))]
    assert widths == sorted(widths, reverse=True) and widths[-1] < 0.01
