"""What only says that there is no answer is not kept as one."""

from __future__ import annotations

import pytest

from semcache.text.refusals import is_refusal
from tests.semcache import factories


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, I can’t assist with this request.",
        "Sorry, I am unable to answer this.",
        "Unfortunately, I do not have access to live data.",
        "As an AI language model, I cannot browse the internet.",
        "I cannot provide medical advice.",
        "I apologize, but I won't write that.",
        "I must decline. This is not something I do.",
        "I don't have any information about your company.",
        "抱歉，我无法回答这个问题。",
        "很抱歉，作为一个人工智能助手，我不能提供医疗建议。",
        "对不起，我没有权限访问您的订单。",
        "作为AI，我无法为您查询实时天气。",
        "我不能协助完成这个请求。",
    ],
)
def test_a_refusal_is_known(answer):
    assert is_refusal(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "Paris is the capital of France.",
        "Penguins cannot fly because their wings are flippers.",
        "You can't divide by zero.",
        "We can't divide by zero.",
        "Honestly I can't recommend this book enough.",
        "Sorry is a board game for two to four players.",
        "Light bends in water. I cannot see why anyone would doubt it.",
        "Unfortunately, the shop is closed on Sundays.",
        "企鹅不能飞，因为它们的翅膀是鳍状的。",
        "抱歉信应当写得简短而真诚。",
        "您不能在周日退货。",
        "",
    ],
)
def test_an_answer_is_none(answer):
    assert not is_refusal(answer)


def test_a_long_answer_is_read_at_its_beginning_and_costs_no_time():
    assert not is_refusal("The sun rises. " * 40 + "I'm sorry, I can't help with that.")
    assert not is_refusal("I " * 1_000_000)


async def test_a_refusal_is_not_stored(committed):
    await factories.arule(ttl_s=86_400)
    assert await factories.store("How do I pick a lock?", "I'm sorry, but I can't help with that.") is None
    assert await factories.store("How do I pick a lock?", "With a tension wrench and a pick.") is not None
