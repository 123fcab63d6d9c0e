"""Which rule decides: matching, precedence, and rules that can not be used."""

from __future__ import annotations

import itertools

import pytest

from semcache.models import CacheRule
from semcache.rules.policy import BadPattern, Mode, Rule, choose, compile_pattern, compiled


def winner(rules, text: str, tenant: str = "", model: str = "") -> int | None:
    chosen = choose(compiled(rules, on_bad=pytest.fail), text, tenant, model)
    return None if chosen is None else chosen.id


WEATHER = [
    Rule(1, "weather", priority=10, keywords=("weather",)),
    Rule(2, "Oslo", priority=10, keywords=("weather in Oslo",)),
    Rule(3, "payment", priority=1, keywords=("payment",), mode="off"),
    Rule(4, "everything", priority=100),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("weather in Oslo", 2), ("the weather", 1), ("payment for weather app", 3), ("hello", 4)],
)
def test_the_same_rule_wins_in_whatever_order_the_rules_come(text, expected):
    assert {winner(order, text) for order in itertools.permutations(WEATHER)} == {expected}


def test_at_equal_priority_off_and_exact_win_then_the_more_specific_then_the_lower_id():
    base = {"priority": 5, "keywords": ("pay",)}
    semantic, exact = Rule(1, "s", **base), Rule(9, "x", **base, mode="exact")
    assert winner([semantic, exact], "pay") == 9
    assert winner([semantic, Rule(9, "x", **base, mode="off")], "pay") == 9
    assert winner([semantic, Rule(9, "x", **(base | {"priority": 6}), mode="off")], "pay") == 1
    assert winner([Rule(1, "s", **base), Rule(2, "t", **base, tenant="sales")], "pay", tenant="sales") == 2
    assert winner([Rule(7, "s", **base), Rule(3, "t", **base)], "pay") == 3


def test_business_line_and_model_narrow_a_rule():
    rules = [Rule(1, "a", tenant="sales"), Rule(2, "b", model="big")]
    assert winner(rules, "x", tenant="sales") == 1
    assert winner(rules, "x", tenant="support", model="big") == 2
    assert winner(rules, "x", tenant="support", model="small") is None


@pytest.mark.parametrize(
    ("keyword", "text", "is_match"),
    [
        ("order", "my orders please", True),
        ("order", "ORDER", True),
        ("order", "the border", False),
        ("订单", "我的订单在哪", True),
        ("order", "查order", True),
        ("a.b", "a.b", True),
        ("a.b", "axb", False),
    ],
)
def test_keywords_count_from_the_start_of_a_word(keyword, text, is_match):
    assert (winner([Rule(1, "r", keywords=(keyword,))], text) == 1) is is_match


def test_pattern_or_keyword_is_enough():
    rules = [Rule(1, "r", pattern="^how much", keywords=("价格",))]
    assert winner(rules, "How much is it") == winner(rules, "看价格") == 1
    assert winner(rules, "hello") is None


@pytest.mark.parametrize("pattern", ["*", "(", "[a-", "\\", "(?=x)", "(a{1000}){1000}", "\ud83d", "a)|(?:b"])
def test_what_is_not_re2_is_refused(pattern):
    with pytest.raises(BadPattern) as caught:
        compile_pattern(pattern)
    assert caught.value.code == "bad_pattern" and str(caught.value)


def test_a_bad_rule_is_left_out_and_reported_and_the_others_work():
    reported = []
    rules = compiled(
        [Rule(1, "bad", pattern="(", priority=1), Rule(2, "good")],
        on_bad=lambda rule, why: reported.append(rule.id),
    )
    assert reported == [1]
    chosen = choose(rules, "x", "", "")
    assert chosen is not None and chosen.id == 2


def test_a_pattern_that_hangs_backtracking_engines_answers_at_once():
    assert winner([Rule(1, "r", pattern=r"(a+)+$")], "a" * 20_000 + "b") is None


def test_modes_are_those_of_the_table():
    assert {mode.value for mode in Mode} == set(CacheRule.Mode.values)
