"""What the wording says: enough to be found by its meaning, personal, short-lived, which writing."""

from __future__ import annotations

import pytest

from semcache.text.wording import Lasting, is_personal, language, lasting, says_enough


@pytest.mark.parametrize(
    "text", ["What is the weather in Oslo?", "如何开启自动续费", "What are your opening hours?"]
)
def test_who_says_enough_may_be_found_by_meaning(text):
    assert says_enough(text)


@pytest.mark.parametrize("text", ["hi", "yes", "why?", "你好", "Who are you?", "x" * 501, "!!!"])
def test_who_says_too_little_or_too_much_may_not(text):
    assert not says_enough(text)


@pytest.mark.parametrize(
    "text", ["What is my name?", "I am Ines", "我的订单", "mail a@b.c", "call 0123456789"]
)
def test_a_question_about_its_asker_is_personal(text):
    assert is_personal(text)


@pytest.mark.parametrize("text", ["What is a black hole?", "今天天气怎么样", "import tax in 2024"])
def test_a_general_question_is_not(text):
    assert not is_personal(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What time is it?", Lasting.THIS_MOMENT), ("现在几点了", Lasting.THIS_MOMENT),
        ("What is on today?", Lasting.THIS_DAY), ("明天上海天气", Lasting.THIS_DAY),
        ("What is a black hole?", Lasting.AS_THE_RULE_SAYS), ("公司介绍", Lasting.AS_THE_RULE_SAYS),
    ],
)  # fmt: skip
def test_how_long_an_answer_can_be_right(text, expected):
    assert lasting(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What?", "latn"),
        ("天气", "zh"),
        ("iPhone 怎么用", "zh"),
        ("天気はどう", "ja"),
        ("날씨", "ko"),
        ("Погода", "other"),
        ("1+1=", "und"),
    ],
)
def test_the_writing_of_a_text(text, expected):
    assert language(text) == expected
