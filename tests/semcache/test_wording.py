"""What the wording says: standing alone, personal, short-lived, which writing."""

from __future__ import annotations

import pytest

from semcache.wording import Lasting, is_personal, language, lasting, stands_alone


@pytest.mark.parametrize(
    "text", ["What is the weather in Oslo?", "如何开启自动续费", "What are your opening hours?"]
)
def test_first_turns_that_say_enough_stand_alone(text):
    assert stands_alone(text, is_first_turn=True)


@pytest.mark.parametrize("text", ["hi", "yes", "why?", "你好", "Who are you?", "x" * 501, "!!!"])
def test_first_turns_that_say_too_little_or_too_much_do_not(text):
    assert not stands_alone(text, is_first_turn=True)


@pytest.mark.parametrize(
    "text",
    [
        "How old is she?", "how do I do that?", "when will someone come out then?", "can you cancel it then please",
        "What about the price in winter months?", "and the opening hours on bank holidays?", "the morning one then",
        "ok so how much will the two month freeze cost me?", "please book Thursday morning then",
        "它的价格是多少", "那上海的天气呢", "这个套餐包含什么内容", "再详细一点介绍", "退款要多久才到账",
        "how long will the refund take?", "book the first slot", "他住在哪个城市",
    ],
)  # fmt: skip
def test_later_messages_that_lean_on_something_do_not(text):
    assert not stands_alone(text, is_first_turn=False)


@pytest.mark.parametrize(
    "text",
    [
        "How many screens can stream at once on the Family plan?",
        "Which languages does Tunely support on Android tablets?",
    ],
)
def test_later_messages_that_lean_on_nothing_do(text):
    assert stands_alone(text, is_first_turn=False)


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
