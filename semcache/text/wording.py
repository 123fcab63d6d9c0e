"""What the wording of a question says about it: its language, whether it says enough, is personal, ages quickly.

Pure, and wrong only to the careful side: a question taken for a personal or a short-lived one is answered by the model
once more.
"""

from __future__ import annotations

import re
from enum import StrEnum

# The embedding looks at 512 tokens and the guard compares sentences, not documents.
MAX_SEMANTIC_CHARS = 500
# Two Chinese characters count as one word.
MIN_WORDS = 2


class Lasting(StrEnum):
    """How long an answer can be right, whatever a rule's time to live says."""

    AS_THE_RULE_SAYS = "as-the-rule-says"
    THIS_DAY = "this-day"
    THIS_MOMENT = "this-moment"


_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_OTHER_LETTER = re.compile(r"[^\W\d_]")

_WORD = re.compile(r"[A-Za-z\u00c0-\u024f']+|\d+")
_FUNCTION_WORDS_TEXT = """
a an the is are am was were be been do does did can could will would shall should may might must have has had
what what's which who whom whose when when's where where's why how how's i i'm you your yours we our us me my
in on at for to from of by with about as into than then so and or but if not no yes yeah ok okay please thanks
just also too very really any some all more most much many there here get got go"""
_FUNCTION_WORDS = frozenset(_FUNCTION_WORDS_TEXT.split())

_PERSONAL = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|myself|we|our|ours|us)\b|[我俺咱]|本人|@|\d{6,}|\bmy name\b",
    re.IGNORECASE,
)
_THIS_MOMENT = re.compile(
    r"\b(?:what(?:'s| is)? (?:the )?(?:current )?time|what time is it|right now|at the moment)\b|"
    r"几点了|现在几点|几点钟了|此刻|当前时间|现在的?时间",
    re.IGNORECASE,
)
_THIS_DAY = re.compile(
    r"\b(?:today|today's|tonight|tomorrow|tomorrow's|yesterday|yesterday's|now|currently|this (?:morning|afternoon|"
    r"evening|week|month|year|weekend)|next (?:week|month|year|weekend)|last (?:night|week|month|year|weekend)|"
    r"latest|recent|what (?:day|date))\b|"
    r"今天|今日|今晚|今早|明天|明日|明晚|昨天|昨日|昨晚|后天|前天|现在|目前|当前|本周|这周|下周|上周|本月|这个月|"
    r"下个?月|上个?月|今年|明年|去年|周末|最新|最近|星期几|几号|几月",
    re.IGNORECASE,
)


def language(text: str) -> str:
    """The writing of `text` as a language tag; an answer never crosses it. "und" when there are no letters."""
    if _KANA.search(text):
        return "ja"
    if _HANGUL.search(text):
        return "ko"
    if _HAN.search(text):
        return "zh"
    if _LATIN.search(text):
        return "latn"
    return "other" if _OTHER_LETTER.search(text) else "und"


def says_enough(text: str) -> bool:
    """Whether the text says enough to be found by its meaning, and not too much to be compared."""
    return len(text) <= MAX_SEMANTIC_CHARS and _num_content_words(text) >= MIN_WORDS


def is_personal(text: str) -> bool:
    """Whether the question speaks of its asker or carries what looks like an address or a number of theirs."""
    return _PERSONAL.search(text) is not None


def lasting(text: str) -> Lasting:
    if _THIS_MOMENT.search(text):
        return Lasting.THIS_MOMENT
    return Lasting.THIS_DAY if _THIS_DAY.search(text) else Lasting.AS_THE_RULE_SAYS


def _num_content_words(text: str) -> int:
    words = [word for word in _WORD.findall(text) if word.lower() not in _FUNCTION_WORDS]
    return len(words) + len(_HAN.findall(text)) // 2
