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
_CLOCK_EN = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))?\s*([ap])\.?\s?m\b\.?")
_CLOCK_24 = re.compile(r"(?<![\d:])(\d{1,2})[:：](\d\d)(?![\d:])")
_CLOCK_ZH = re.compile(
    r"(凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里)?的?([0-9]{1,2}|[一二三四五六七八九十两]{1,3})点"
    r"(?:(半)|(一刻)|([0-9]{1,2}|[一二三四五六七八九十]{1,3})分|整|钟)?(?![0-9一二三四五六七八九十])"
)
_AFTER_NOON_ZH = frozenset(["下午", "傍晚", "晚上", "夜里"])
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})(?:[日号]|(?!\d))")
_MONTH_DAY_ZH = re.compile(
    r"(?<!\d)(\d{1,2}|[一二三四五六七八九十]{1,2})月份?(?:(\d{1,2}|[一二三四五六七八九十]{1,3})[日号])?"
)
_DURATIONS = (
    (re.compile(r"\b(?:half an hour|a half hour|half-hour)\b"), "30 minutes"),
    (re.compile(r"\b(?:an|one|1) hour and a half\b|\bone and a half hours\b|\b1\.5 hours\b"), "90 minutes"),
    (re.compile(r"\b(?:a )?quarter of an hour\b"), "15 minutes"),
    (re.compile(r"\bhalf a year\b"), "6 months"),
    (re.compile(r"\b(?:a|one) dozen\b"), "12"),
    (re.compile(r"\b(?:an?|one)(?= (?:hour|day|week|month|year|minute)s?\b)"), "1"),
    (re.compile("一个半小?时|1个半小时|一个半钟头"), "90分钟"),
    (re.compile("半个?(?:小时|钟头)"), "30分钟"),
    (re.compile("一刻钟"), "15分钟"),
    (re.compile("半年"), "6个月"),
    (re.compile(r"(?<![\d.第一二三四五六七八九十])(?:一|1 ?)个"), "个"),
)
SCALES_EN = {"k": 1000, "hundred": 100, "thousand": 1000, "million": 1_000_000, "bn": 1e9, "billion": 1e9}
_SCALED_EN = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?(k|hundred|thousand|million|bn|billion)\b")
_UNITS_EN = {word: value for value, word in enumerate(_SMALL_NUMBERS.split())}
_TENS_EN = {
    word: 20 + 10 * place
    for place, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    )
}
_MULTIPLES_EN = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_NUMERAL_EN = re.compile(
    rf"\b(?:{'|'.join([*_UNITS_EN, *_TENS_EN, *_MULTIPLES_EN])})"
    rf"(?:(?:[ -]| and )(?:{'|'.join([*_UNITS_EN, *_TENS_EN, *_MULTIPLES_EN])}))+\b"
)
_PERCENT_ZH = re.compile("百分之([零〇一二两三四五六七八九十百点\\d]+)")
_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)\b")
_WEEKDAY_ZH = re.compile("(?:周|星期|礼拜)([一二三四五六日天1-7])")
_MAY = re.compile(r"(?<=\b(?:in|of|on|by) )May\b|\bMay(?= \d)|(?<=\d )May\b")
# A lone Chinese digit counts something only before one of these.
_COUNTED_ZH = set(
    "年月日号天周时分秒元块点米斤吨人位名只条张本次楼层岁倍折寸级个件台部家套间页门路线环室厅句代星小公万亿成"
)
_VAGUE_ONE_ZH = re.compile("一(?=[个种样起般直定切边])")


def in_digits(text: str) -> str:
    """`text` (NFKC) in lower case with numerals as digits, weekdays and months as tokens, symbols as words."""
    text = _MAY.sub("month5", text).lower()
    text = _durations(_dates(_clock_times(text)))
    text = _SCALED_EN.sub(
        lambda match: f"{float(match[1]) * SCALES_EN[match[2]]:.15g} ", _english_numbers(text)
    )
    text = _WEEKDAY_ZH.sub(
        lambda match: f" weekday{'一二三四五六日'.find(match[1].replace('天', '日')) + 1} ", text
    )
    text = _SCALED_ZH.sub(_scaled, text)
    text = _PERCENT_ZH.sub(lambda match: f" {match[1]} percent ", text)
    text = _NUMERAL_ZH.sub(lambda match: _chinese_number(match, text), _VAGUE_ONE_ZH.sub("", text))
    for symbol, word in SYMBOLS.items():
        text = text.replace(symbol, word)
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


def _english_numbers(text: str) -> str:
    """ "two thousand five hundred" as 2500; a number word that stands alone is `number_word`'s business."""
    return _NUMERAL_EN.sub(lambda match: str(_english_value(re.split(r"[ -]", match[0]))), text)


def _english_value(words: list[str]) -> int:
    total = section = 0
    for word in words:
        if word in _MULTIPLES_EN and _MULTIPLES_EN[word] > 100:
            total += (section or 1) * _MULTIPLES_EN[word]
            section = 0
        elif word == "hundred":
            section = (section or 1) * 100
        else:
            section += (_UNITS_EN | _TENS_EN).get(word, 0)
    return total + section


def _clock_times(text: str) -> str:
    """Times of day as hh:mm of 24 hours, whether written "3 pm", "15:00" or "下午三点"."""
    text = _CLOCK_EN.sub(
        lambda match: _clock(int(match[1]) % 12 + 12 * (match[3] == "p"), match[2] or 0), text
    )
    text = _CLOCK_24.sub(lambda match: _clock(match[1], match[2]), text)
    return _CLOCK_ZH.sub(_clock_zh, text)


def _clock_zh(match: re.Match[str]) -> str:
    is_said = any((match[1], match[3], match[4], match[5])) or match[0].endswith(("整", "钟"))
    if match[2] == "一" and not is_said:
        return match[0]  # "a little"
    hour = _number_zh(match[2])
    if match[1] in _AFTER_NOON_ZH and hour < 12:
        hour += 12
    minutes = 30 if match[3] else 15 if match[4] else _number_zh(match[5]) if match[5] else 0
    return _clock(hour, minutes)


def _clock(hour: int | str, minutes: int | str) -> str:
    return f" {int(hour):02d}:{int(minutes):02d} "


def _dates(text: str) -> str:
    """Days as a token for the month and plain numbers, whether written "2024-03-05", "3月5日" or "2024年3月5号"."""
    text = _ISO_DATE.sub(lambda match: f" {match[1]} month{int(match[2])} {int(match[3])} ", text)
    return _MONTH_DAY_ZH.sub(_month_day, text)


def _month_day(match: re.Match[str]) -> str:
    month, day = _number_zh(match[1]), match[2]
    return f" month{month} {_number_zh(day)} " if day else f" month{month} "


def _durations(text: str) -> str:
    for pattern, replacement in _DURATIONS:
        text = pattern.sub(replacement, text)
    return text


def _number_zh(numeral: str) -> int:
    return int(numeral) if numeral.isdigit() and numeral.isascii() else chinese_value(numeral)


def _chinese_number(match: re.Match[str], text: str) -> str:
    numeral, after = match[0], match.string[match.end() : match.end() + 1]
    before = match.string[max(0, match.start() - 1) : match.start()]
    if len(numeral) == 1 and after not in _COUNTED_ZH and before != "第":
        return numeral
    return f" {chinese_value(numeral)} "


def _scaled(match: re.Match[str]) -> str:
    unit = (SMALL_UNITS_ZH | LARGE_UNITS_ZH)[match[2]]
    return f"{float(match[1]) * unit:.15g} "
