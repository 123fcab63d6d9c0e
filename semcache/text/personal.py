"""What in a text is somebody's: numbers, addresses and names that lead to a person.

Pure, and wrong only to the careful side: a text taken for a personal one stays with whoever asked. It knows patterns
and no names, so a bare "Ines Weber" passes; that several people got the same answer to the same words is what stands
against that (`promotion`).
"""

from __future__ import annotations

import re
from enum import StrEnum

from semcache.text import wording


class Personal(StrEnum):
    E_MAIL = "e-mail"
    NUMBER = "number"  # of a phone, a card, an identity card, a bank account
    ACCOUNT = "account"  # said to be an account's, an order's, a password
    ADDRESS = "address"
    NAME = "name"
    BIRTH = "birth"
    ASKER = "asker"  # speaks of whoever asks


_E_MAIL = re.compile(r"[\w.+-]\s?[@＠]\s?[\w-]+|\w\s*[\[(]\s*at\s*[\])]\s*\w", re.IGNORECASE)
# Dates and years are no phone numbers.
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d(?:[-/.年]\d{1,2}(?:[-/.月]\d{1,2}日?)?)?(?!\d)")
_NUMBER = re.compile(
    r"(?<!\d)\+?\(?\d(?:[ ()./\u00a0\u2010-\u2015-]{0,2}\d){6,}|"  # seven digits and more, however grouped
    r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,}|"  # IBAN
    r"\b[A-Z]{1,2}[ -]?\d{6,9}\b|"  # passports
    r"\b[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]\b|"  # National Insurance
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|"  # a computer's address
    r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-Z][· ]?[A-Z0-9]{5,6}\b",  # number plates
    re.IGNORECASE,
)
_ACCOUNT = re.compile(
    r"\b(?:account|acct|order|booking|reservation|invoice|customer|member|policy|ticket|tracking|parcel|case|card|"
    r"passport|licen[cs]e|reference|ref|contract|patient|user|employee|student)s?\b\W{0,2}"
    r"(?:(?:number|no|nr|id)\b\W{0,2})?(?:is\b\W{0,2})?(?=[a-z-]{0,6}\d)[\w-]*\d[\w-]*|"
    r"\b(?:password|passcode|pin|user ?name|login)\s*(?:is\b|[:=])|"
    r"(?:账号|帐号|账户|帐户|订单|卡号|银行卡|信用卡|身份证|护照|会员|工号|学号|保单|运单|快递|手机|电话|车牌|合同|发票|病历)"
    r"(?:号码|号|编号|单号)?\s*(?:是|为|[:：#])?\s*[A-Za-z-]{0,6}\d[\w-]*|"
    r"(?:密码|微信号?|QQ号?|用户名)\s*(?:是|为|[:：])",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"\b\d{1,5}[a-z]?,?\s+(?:[^\W\d_][\w'.-]*\s+){1,4}(?:street|st|avenue|ave|road|rd|lane|ln|drive|boulevard|blvd|terrace)\b|"
    r"\b\w+(?:straße|strasse|str\.)\s*\d+|\b(?:rue|avenue|calle|via)\s+\w+(?:\s\w+)?,?\s+\d{1,4}\b|"
    r"\bp\.?\s?o\.?\s?box\s+\d+|\b[A-Z]{1,2}\d[A-Z\d]?\s+\d[A-Z]{2}\b|"
    r"\b(?:home )?address(?:\s+is\b|\s*:)|\blives? (?:at|on) \d|"
    r"(?:路|街|巷|弄|胡同|大道)\s*\d+\s*[号弄]|\d+\s*号(?:楼|院|门|室)|\d+\s*(?:栋|幢|单元|室)|家住|住址|地址(?:是|为|[:：])",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"\b(?:my|his|her|their|whose) name\b|\bnamed [A-Z]|\b(?:mr|mrs|ms|mx)\b\.?\s+\w|\b(?:dr|prof)\.?\s+[A-Z]|"
    r"\bcall me\b|[我他她]叫|名叫|名字(?:叫|是)|姓名|[\u4e00-\u9fff](?:先生|女士|小姐|同学|老师)",
    re.IGNORECASE,
)
_BIRTH = re.compile(
    r"\bborn (?:on|in)\b|\bdate of birth\b|\bbirthday is\b|\bd\.?o\.?b\b|出生于|出生日期|生日是",
    re.IGNORECASE,
)


def kinds_in(text: str) -> frozenset[Personal]:
    """What in a question or an answer may lead to a person; empty when nothing does."""
    undated = _DATE.sub(" ", text)
    found = {
        Personal.E_MAIL: _E_MAIL.search(text),
        Personal.NUMBER: _NUMBER.search(undated),
        Personal.ACCOUNT: _ACCOUNT.search(undated),
        Personal.ADDRESS: _ADDRESS.search(text),
        Personal.NAME: _NAME.search(text),
        Personal.BIRTH: _BIRTH.search(text),
        Personal.ASKER: wording.is_personal(text),
    }
    return frozenset(kind for kind, is_found in found.items() if is_found)
