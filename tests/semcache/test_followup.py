"""A later message stands alone only if nothing in it points back and it brings a topic of its own."""

from __future__ import annotations

import pytest

from semcache.text import followup
from semcache.text.followup import stands_alone
from semcache.text.normalize import canonical

ELSEWHERE = ("I forgot the password of my mailbox", "done, thanks")


@pytest.mark.parametrize(
    "text",
    [
        "How old is she?", "how do I do that?", "when will someone come out then?", "can you cancel it then please",
        "What about the price in winter months?", "and the opening hours on bank holidays?", "the morning one then",
        "ok so how much will the two month freeze cost me?", "please book Thursday morning then",
        "how long will the refund take?", "book the first slot", "Where do I send the parcel?", "How much is delivery?",
        "What's the deadline?", "how many days do I get this year?", "Do I need a new photo?", "Can I collect at 10pm?",
        "Which documents did you list?", "Do you sell matching leather jackets?",
        "Which cheaper family tickets exist at night?",
        "What are the side effects for small children?", "Are there side effects in small children?",
        "How large is the population by age groups?", "Can my brother park his lorry there overnight?",
        "Which branch opens earlier on public holidays?", "Why is my insurance company late this year?",
        "What other payment methods exist for students?", "Is breakfast included for hotel guests?",
        "How long will the refund take to arrive by cheque?", "Can you cancel my streaming membership?",
        "When will my replacement card arrive by mail?",
        "Wie viel kostet eine Fahrkarte nach Hamburg im Sommer?", "yes", "hi", "why?", "x" * 501,
    ],
)  # fmt: skip
def test_a_message_that_leans_on_something_does_not(text):
    assert not stands_alone(canonical(text), ELSEWHERE)


@pytest.mark.parametrize(
    "text",
    [
        "它的价格是多少", "那上海的天气呢", "这个套餐包含什么内容", "再详细一点介绍", "退款要多久才到账",
        "他住在哪个城市", "怎么取消自动续费", "你们有现货吗", "有黑色的吗", "第二点是什么意思",
        "什么是它的优点", "是什么意思", "为什么",
        "我的iPhone什么时候发货", "还有别的iPhone型号吗", "上面提到的API怎么调用",
    ],
)  # fmt: skip
def test_a_chinese_message_that_may_leave_something_out_does_not(text):
    assert not stands_alone(text, ("我想问一下", "谢谢"))


@pytest.mark.parametrize(
    "text",
    [
        "How many screens can stream at once on the Family plan?",
        "Which languages does Tunely support on Android tablets?", "How do I report a gas leak at night?",
        "By the way, do you have a newsletter about garden plants?", "What is the capital of France in summer months?",
        "What's the limit for taking money abroad?", "How do I contact the council about noise?",
        "What time does the pharmacy open on Sundays?", "Where can I park a lorry in Hamburg overnight?",
        "Oh, one last thing: do you have a newsletter about garden plants, please?",
        "In which countries are Tunely concerts free?", "Could you tell me which shops sell vinyl records? Thanks!",
        "How long is the season for wild mushrooms?", "How do I change my postal address online?",
        "什么是黑洞", "光合作用是什么意思", "微信怎么绑定 Visa 信用卡", "《红楼梦》的作者是哪位作家",
    ],
)  # fmt: skip
def test_a_message_that_says_all_about_a_topic_of_its_own_does(text):
    assert stands_alone(canonical(text), ELSEWHERE)


@pytest.mark.parametrize(
    ("text", "earlier"),
    [
        ("How do I report a gas leak at night?", "I want to report a gas leak"),
        ("What time does the pharmacy open on Sundays?", "Do you know the pharmacy in Elm Street?"),
        ("什么是黑洞", "黑洞有多大"),
    ],
)
def test_a_topic_that_was_spoken_of_is_none_of_its_own(text, earlier):
    assert stands_alone(canonical(text), ELSEWHERE)
    assert not stands_alone(canonical(text), (earlier,))


@pytest.mark.parametrize(
    ("sign", "text"),
    [
        ("_POINTS_BACK", "Which languages does it support on tablets?"),
        ("_COMPARES", "Which cheaper family tickets exist at night?"),
        ("_RELATION", "Are there side effects in small children?"),
        ("_STARTS_AS_FOLLOW_UP", "and winter prices of train tickets?"),
        ("_WANTS_IT_DONE", "Could you cancel gym contracts at night?"),
        ("_OF_ONE_OCCASION", "How long will the refund take to arrive by cheque?"),
    ],
)
def test_without_one_of_the_signs_something_would_be_let_through(monkeypatch, sign, text):
    """Each of them is needed: a message that only this one holds back."""
    assert not stands_alone(canonical(text), ELSEWHERE)
    monkeypatch.setattr(followup, sign, followup.re.compile(r"(?!)"))
    assert stands_alone(canonical(text), ELSEWHERE)
