"""What the guard lets through and what it stops, in both languages and both directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.text.guard import CHECKS, may_serve, verdicts

# (check that must object, one question, another)
DIFFERENT = [
    ("numbers", "What was the revenue in 2023?", "What was the revenue in 2024?"),
    ("numbers", "Convert 100 USD to GBP", "Convert 1,000 USD to GBP"),
    ("numbers", "What do two adults pay?", "What do three adults pay?"),
    ("numbers", "What do 2 adults and 3 pensioners pay?", "What do 3 adults and 2 pensioners pay?"),
    ("numbers", "2023年的销售额", "2024年的销售额"),
    ("numbers", "三天后出发", "五天后出发"),
    ("numbers", "贷款二十万每月还多少", "贷款三十万每月还多少"),
    ("numbers", "第一章讲什么", "第二章讲什么"),
    ("numbers", "二〇二三年的年报", "两千零二十四年的年报"),
    ("numbers", "3万元存一年利息", "3亿元存一年利息"),
    ("content", "Can I upload files of 10MB?", "Can I upload files of 10GB?"),
    ("numbers", "How much is a call-out at 2pm?", "How much is a call-out at 2am?"),
    ("content", "5公里要多久", "5公斤要多久"),
    ("dates", "Is it open on Monday?", "Is it open on Tuesday?"),
    ("dates", "What is the cap from October?", "What is the cap from January?"),
    ("dates", "周一开门吗", "星期二开门吗"),
    ("opposites", "What is the weather today?", "What is the weather tomorrow?"),
    ("opposites", "今天上海天气", "明天上海天气"),
    ("content", "3月的报表", "3日的报表"),
    ("negation", "Which plans include backup?", "Which plans do not include backup?"),
    ("negation", "What happens if I pay on time?", "What happens if I don't pay on time?"),
    ("negation", "Can I fly without a visa?", "Can I fly with a visa?"),
    ("negation", "可以带宠物吗", "不可以带宠物吗"),
    ("negation", "哪些套餐有备份", "哪些套餐没有备份"),
    ("negation", "已经付款的订单", "未付款的订单"),
    ("opposites", "How do I switch on two-step login?", "How do I switch off two-step login?"),
    ("opposites", "How do I turn the water supply on?", "How do I turn the water supply off?"),
    ("opposites", "Is the east door open on Sunday?", "Is the east door closed on Sunday?"),
    ("opposites", "How do I enable 2FA?", "How do I disable 2FA?"),
    ("opposites", "How do I buy shares?", "How do I sell shares?"),
    ("opposites", "How do I increase the font size?", "How do I decrease the font size?"),
    ("opposites", "如何开启自动续费？", "如何关闭自动续费？"),
    ("opposites", "怎么买基金", "怎么卖基金"),
    ("opposites", "怎么上传文件", "怎么下载文件"),
    ("opposites", "左边的按钮坏了", "右边的按钮坏了"),
    ("persons", "What is my name?", "What is your name?"),
    ("persons", "我欠多少", "你欠多少"),
    ("question", "When was the bridge built?", "Where was the bridge built?"),
    ("question", "How long is the warranty?", "How much is the warranty?"),
    ("question", "会议什么时候开", "会议在哪里开"),
    ("question", "Can I cancel the order?", "How can I cancel the order?"),
    ("direction", "Convert USD to EUR", "Convert EUR to USD"),
    ("direction", "Flights from Oslo to Bergen", "Flights from Bergen to Oslo"),
    ("direction", "Can dogs chase cats?", "Can cats chase dogs?"),
    ("direction", "北京到上海怎么走", "上海到北京怎么走"),
    ("direction", "日元换美元", "美元换日元"),
    ("direction", "猫怕狗吗", "狗怕猫吗"),
    ("content", "Weather in Beijing", "Weather in Shanghai"),
    ("content", "北京天气怎么样", "上海天气怎么样"),
    ("content", "大西洋有多深", "太平洋有多深"),
    ("content", "Is there an iPhone app?", "Is there an Android app?"),
    ("content", "iPhone15怎么截屏", "iPhone14怎么截屏"),
    (
        "content",
        "How much maternity pay do employees get?",
        "How much maternity pay do self-employed people get?",
    ),
    ("content", "What are the duties of an employer?", "What are the duties of an employee?"),
    ("content", "张伟的电话", "李娜的电话"),
    ("content", "猫被狗咬了", "猫把狗咬了"),
    ("content", "How do I change my contact?", "How do I change my contract?"),
    ("content", "Which dessert is open?", "Which desert is open?"),
    ("content", "怎么查看密码", "怎么重置密码"),
]

SAME = [
    ("How do I set up voicemail on my phone?", "On my phone, how do I set up voicemail?"),
    ("How much is a boiler service?", "What's the price of a boiler service?"),
    ("What time does check-in close for my flight?", "When does check-in close for my flight?"),
    ("How do I order a replacement card?", "Hi, quick one: how do I order a replacement card? Many thanks"),
    ("你们几点开门", "您好，请问你们几点开门？谢谢"),
    ("How do I switch on two-step login?", "How can I turn on two-step login?"),
    ("What is the weather in Oslo?", "what's the weather in Oslo"),
    ("Which plans include backup?", "Which of the plans include a backup?"),
    ("How do I renew my library books online?", "How can I renew my library books online, please?"),
    ("How do I find my nearest store?", "How do I find my nearest shop?"),
    ("Do you offer a vegetarian set menu?", "Do you offer a vegitarian set menu?"),
    ("Convert 1,000 dollars to pounds", "Convert 1000 USD to GBP"),
    ("What do two adults pay?", "What do 2 adults pay?"),
    ("What is open on Monday?", "What's open on Mondays?"),
    ("Flights from Oslo to Bergen", "flights to Bergen from Oslo"),
    ("如何开启自动续费？", "怎么打开自动续费"),
    ("今天天气怎么样", "今天天气如何？"),
    ("两千零二十三年的销售额", "2023年的销售额是多少"),
    ("三个苹果多少钱", "3个苹果多少钱"),
    ("怎么取消订单", "订单怎么取消"),
    ("请问怎么修改密码", "如何更改密码？"),
    ("周一开门吗", "星期一开门吗"),
    ("能不能退货", "可以退货吗"),
]


@pytest.mark.parametrize(("check", "one", "other"), DIFFERENT)
def test_a_different_question_is_stopped_by_the_check_that_is_meant_for_it(check, one, other):
    for found in (verdicts(one, other), verdicts(other, one)):
        objections = {verdict.check: verdict.why for verdict in found if not verdict.passed}
        assert check in objections
        assert objections[check]
        assert not may_serve(found)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_question_in_other_words_passes(one, other):
    for found in (verdicts(one, other), verdicts(other, one)):
        assert [verdict for verdict in found if not verdict.passed] == []


@given(st.text(max_size=60))
def test_a_question_may_always_serve_itself(text):
    assert may_serve(verdicts(text, text))


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_order_of_the_two_questions_changes_nothing(one, other):
    assert may_serve(verdicts(one, other)) == may_serve(verdicts(other, one))


def test_every_check_gives_a_verdict():
    assert [verdict.check for verdict in verdicts("a", "b")] == list(CHECKS)
