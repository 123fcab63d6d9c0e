"""What leads to a person is seen in questions and answers, in English and Chinese; what does not is not."""

from __future__ import annotations

import pytest

from semcache.text.personal import Personal, kinds_in

IMPERSONAL = (
    "Both plans include backup.",
    "The office opened on 2024-01-02 and has 12,500 visitors a year.",
    "Between 1999 and 2023 - 2024 sales grew by 3.5 %, to $1,000,000.",
    "Black holes are made of nothing but gravity; the nearest is 1,560 light years away.",
    "Trains leave at 9:30, 10:30 and 11:30 from platform 2.",
    "Version 3.11.2 needs 16 GB of memory.",
    "The refund takes 5 to 7 days.",
    "退款需要 5 到 7 个工作日。",
    "成立于 2015 年 3 月 1 日，有 12,500 名员工。",
    "高铁大约 4 小时 30 分。",
)
PERSONAL = {
    Personal.E_MAIL: ("Write to ines.weber@example.org.", "ines (at) example dot org", "邮箱 a.b@example.cn"),
    Personal.NUMBER: (
        "Call +49 30 901820.", "(555) 010-4477", "card 4111 1111 1111 1111", "SSN 078-05-1120", "139 1234 5678",
        "110101199003074514", "DE89 3704 0044 0532 0130 00", "passport C01234567", "QQ 12 34 13 C", "京A12345",
        "from 192.168.10.20",
    ),
    Personal.ACCOUNT: (
        "Order no. 4471 has left.", "Your booking ABC-12 is confirmed.", "The password is rose.",
        "订单号：A-4471 已发货", "密码是玫瑰", "银行卡号 6222", "会员编号 88",
    ),
    Personal.ADDRESS: (
        "He moved to 12 Rose Street.", "Lindenstraße 4", "P.O. Box 12", "London SW1A 1AA", "Her address is unknown",
        "人民路 12 号", "3 栋 2 单元 501 室", "家住朝阳区",
    ),
    Personal.NAME: ("My name is Ines.", "Ask Mrs Weber.", "call me Ines", "我叫小明", "姓名：张三", "张先生的订单"),
    Personal.BIRTH: ("She was born on the 3rd.", "Date of birth: unknown", "他出生于上海", "生日是三月一日"),
    Personal.ASKER: ("I think so.", "We are open.", "我们九点开门", "number 123456"),
}  # fmt: skip


@pytest.mark.parametrize("text", IMPERSONAL)
def test_nothing_personal_is_seen_where_nothing_is(text):
    assert kinds_in(text) == frozenset()


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in PERSONAL.items() for text in texts]
)
def test_what_leads_to_a_person_is_seen_and_called_by_its_kind(kind, text):
    assert kind in kinds_in(text)
