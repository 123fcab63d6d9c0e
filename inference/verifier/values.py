"""Numbers, dates and times, each with the ways in which people write them.

Knows English and Chinese spelling. Does not know sentences. Two values never share a spelling.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

_ONES = tuple(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "  # noqa: SIM905
    "seventeen eighteen nineteen".split()
)
_TENS = tuple("- - twenty thirty forty fifty sixty seventy eighty ninety".split())  # noqa: SIM905
_MONTHS = tuple(
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_CHINESE_DIGITS = "零一二三四五六七八九"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One value of a slot. Two texts with the same meanings in the same frame ask the same."""

    kind: str  # what a pair that differs only here is called
    spellings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A slot whose values are made, not listed: `near` draws one that is easily taken for `number`."""

    kind: str
    draw: Callable[[random.Random], int]
    near: Callable[[int, random.Random], int]
    spell: Callable[[int, str], tuple[str, ...]]

    def meaning(self, number: int, language: str) -> Meaning:
        return Meaning(self.kind, self.spell(number, language))


def english_words(number: int) -> str:
    """0 to 9,999."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        ones = f"-{_ONES[number % 10]}" if number % 10 else ""
        return _TENS[number // 10] + ones
    size, name = (100, "hundred") if number < 1000 else (1000, "thousand")
    head, rest = divmod(number, size)
    joint = " and " if 0 < rest < 100 else " "
    return f"{english_words(head)} {name}{joint + english_words(rest) if rest else ''}"


def chinese_words(number: int) -> str:
    """0 to 9,999, as read aloud; a lone two is the one that counts things."""
    if number == 2:
        return "两"
    text = ""
    for place, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // place % 10
        if digit:
            text += _CHINESE_DIGITS[digit] + name
        elif text and number % place and not text.endswith("零"):
            text += "零"
    text = text or "零"
    return text[1:] if text.startswith("一十") else text


def _near_number(low: int, high: int) -> Callable[[int, random.Random], int]:
    def near(number: int, rng: random.Random) -> int:
        digits = str(number)
        turned = int(digits[::-1])
        options = {number + 1, number - 1, number + 10, number * 10, number * 2, number // 10, turned}
        options |= {rng.randint(low, high)}
        options = {option for option in options if low <= option <= high} - {number}
        return rng.choice(sorted(options)) if options else number + 1

    return near


def _spell_number(number: int, language: str) -> tuple[str, ...]:
    plain = str(number)
    words = english_words(number) if language == "en" else chinese_words(number)
    return (plain, words) if number < 1000 else (plain, f"{number:,}", words)


def _spell_year(year: int, language: str) -> tuple[str, ...]:
    if language == "en":
        return (str(year), f"the year {year}")
    return (f"{year}年", "".join(_CHINESE_DIGITS[int(digit)] for digit in str(year)) + "年")


def _spell_percent(percent: int, language: str) -> tuple[str, ...]:
    if language == "en":
        return (f"{percent}%", f"{percent} %", f"{percent} percent", f"{english_words(percent)} per cent")
    spoken = "二" if percent == 2 else chinese_words(percent)
    return (f"{percent}%", f"百分之{percent}", f"百分之{spoken}")


def _spell_date(day_of_year: int, language: str) -> tuple[str, ...]:
    """Months of 28 days are enough here."""
    month, day = divmod(day_of_year, 28)
    if language == "zh":
        spoken = "二" if day + 1 == 2 else chinese_words(day + 1)
        name = "二" if month + 1 == 2 else chinese_words(month + 1)
        return (f"{month + 1}月{day + 1}日", f"{month + 1}月{day + 1}号", f"{name}月{spoken}号")
    name, suffix = _MONTHS[month], _suffix(day + 1)
    return (
        f"{day + 1} {name}",
        f"{name} {day + 1}",
        f"{name} {day + 1}{suffix}",
        f"the {day + 1}{suffix} of {name}",
    )


def _suffix(day: int) -> str:
    if 10 < day < 14:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _spell_time(hour: int, language: str) -> tuple[str, ...]:
    twelve, half = hour % 12 or 12, "am" if hour < 12 else "pm"
    if language == "en":
        return (f"{hour}:00", f"{twelve} {half}", f"{twelve}{half}")
    part = "早上" if hour < 11 else "中午" if hour < 13 else "下午" if hour < 18 else "晚上"
    spoken = "两" if twelve == 2 else chinese_words(twelve)
    return (f"{hour}:00", f"{part}{twelve}点", f"{part}{spoken}点")


QUANTITIES: dict[str, Quantity] = {
    "n": Quantity("number", lambda rng: rng.randint(2, 60), _near_number(2, 99), _spell_number),
    "big": Quantity(
        "number",
        lambda rng: rng.choice((1, 5, 10, 50)) * rng.randint(21, 199),
        _near_number(11, 9990),
        _spell_number,
    ),
    "percent": Quantity("number", lambda rng: rng.randint(1, 95), _near_number(1, 99), _spell_percent),
    "year": Quantity("date", lambda rng: rng.randint(1990, 2026), _near_number(1985, 2029), _spell_year),
    "date": Quantity("date", lambda rng: rng.randrange(336), _near_number(0, 335), _spell_date),
    "time": Quantity("date", lambda rng: rng.randint(7, 22), _near_number(6, 23), _spell_time),
}
