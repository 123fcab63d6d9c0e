"""Numbers and calendar words in a text, in one notation for English and Chinese.

Pure. Rewrites them into plain digits and tokens so that "两千零二十三年", "2023 年" and "2,023" read alike; decides
nothing. A numeral that is read wrongly is read wrongly on both sides of a comparison and costs a hit at most.
"""

from __future__ import annotations

import re

DIGITS_ZH = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
SMALL_UNITS_ZH = {"十": 10, "百": 100, "千": 1000}
LARGE_UNITS_ZH = {"万": 10_000, "亿": 100_000_000}
_SMALL_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty"""
_MONTHS = "january february march april may june july august september october november december"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
NUMBER_WORDS = {word: value for value, word in enumerate(_SMALL_NUMBERS.split())} | {
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
    "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000, "dozen": 12, "half": 0.5, "double": 2,
    "twice": 2, "once": 1, "third": 3, "fourth": 4, "fifth": 5,
}  # fmt: skip
MONTHS = _MONTHS.split()
WEEKDAYS = _WEEKDAYS.split()
SYMBOLS = {
    "£": " pound ",
    "$": " dollar ",
    "€": " euro ",
    "¥": " yuan ",
    "%": " percent ",
    "℃": " 度 ",
    "元": " yuan ",
}

# Short forms that are words of their own stay words: may, mar, sun, sat, wed, dec.
_CALENDAR = (
    {name: f"month{number}" for number, name in enumerate(MONTHS, start=1) if name != "may"}
    | {
        name[:3]: f"month{number}"
        for number, name in enumerate(MONTHS, start=1)
        if name[:3] not in ("may", "mar", "dec")
    }
    | {"month5": "month5", "sept": "month9"}
    | {
        name + plural: f"weekday{number}"
        for number, name in enumerate(WEEKDAYS, start=1)
        for plural in ("", "s")
    }
    | {
        "mon": "weekday1",
        "tue": "weekday2",
        "tues": "weekday2",
        "thu": "weekday4",
        "thur": "weekday4",
        "thurs": "weekday4",
    }
    | {"fri": "weekday5"}
)

_NUMERAL_ZH = re.compile("[零〇一二两三四五六七八九十百千万亿]+")
_SCALED_ZH = re.compile(r"(\d+(?:\.\d+)?)\s*([百千万亿])")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TRAILING_ZEROS = re.compile(r"(\d+\.\d*?)0+(?!\d)")
_CLOCK = re.compile(r"(\d)\s*([ap])\.?m\b\.?")
_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)\b")
_WEEKDAY_ZH = re.compile("(?:周|星期|礼拜)([一二三四五六日天1-7])")
_MAY = re.compile(r"(?<=\b(?:in|of|on|by) )May\b|\bMay(?= \d)|(?<=\d )May\b")
# A lone Chinese digit counts something only before one of these.
_COUNTED_ZH = set(
    "年月日号天周时分秒元块点米斤吨人位名只条张本次楼层岁倍折寸级个件台部家套间页门路线环室厅句代星小公万亿成"
)
_VAGUE_ONE_ZH = re.compile("一(?=[个下些点种样起般直定切边])")


def in_digits(text: str) -> str:
    """`text` (NFKC) in lower case with numerals as digits, weekdays and months as tokens, symbols as words."""
    text = _MAY.sub("month5", text).lower()
    text = _WEEKDAY_ZH.sub(
        lambda match: f" weekday{'一二三四五六日'.find(match[1].replace('天', '日')) + 1} ", text
    )
    text = _SCALED_ZH.sub(_scaled, text)
    text = _NUMERAL_ZH.sub(lambda match: _chinese_number(match, text), _VAGUE_ONE_ZH.sub("", text))
    for symbol, word in SYMBOLS.items():
        text = text.replace(symbol, word)
    text = _CLOCK.sub(r"\1 \2mclock ", text)
    text = _ORDINAL.sub(r"\1 ", text)
    text = _THOUSANDS.sub("", text)
    return _TRAILING_ZEROS.sub(lambda match: match[1].rstrip("."), text)


def calendar_token(word: str) -> str | None:
    """ "month3" or "weekday1" for an English month or weekday, also shortened; None for another word."""
    return _CALENDAR.get(word)


def number_word(word: str) -> str | None:
    """Digits for an English number word. "one" is more often a pronoun and stays a word."""
    value = NUMBER_WORDS.get(word)
    return None if value is None or word == "one" else f"{value:g}"


def chinese_value(numeral: str) -> int:
    """The value of a run of Chinese numerals, place by place ("二〇二三") or with units ("两千零二十三")."""
    if all(character in DIGITS_ZH for character in numeral):
        return int("".join(str(DIGITS_ZH[character]) for character in numeral))
    total = section = digit = 0
    for character in numeral:
        if character in DIGITS_ZH:
            digit = DIGITS_ZH[character]
        elif character in SMALL_UNITS_ZH:
            section += (digit or 1) * SMALL_UNITS_ZH[character]
            digit = 0
        else:
            total = (total + section + digit or 1) * LARGE_UNITS_ZH[character]
            section = digit = 0
    return total + section + digit


def _chinese_number(match: re.Match[str], text: str) -> str:
    numeral, after = match[0], match.string[match.end() : match.end() + 1]
    before = match.string[max(0, match.start() - 1) : match.start()]
    if len(numeral) == 1 and after not in _COUNTED_ZH and before != "第":
        return numeral
    return f" {chinese_value(numeral)} "


def _scaled(match: re.Match[str]) -> str:
    unit = (SMALL_UNITS_ZH | LARGE_UNITS_ZH)[match[2]]
    return f"{float(match[1]) * unit:.15g} "
