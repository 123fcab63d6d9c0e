"""How people really type: politeness, missing capitals and marks, contractions, slips.

Knows what never changes a meaning. Slips happen in the frame's own words only, never in a slot.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from inference.verifier.frames import SLOT

_BEFORE = {
    "en": (
        "Hi, ",
        "Hello, ",
        "Quick question: ",
        "Please tell me: ",
        "Hey there, ",
        "I have a question. ",
        "So, ",
    ),
    "zh": (
        "请问",
        "你好，",
        "麻烦问一下，",
        "想问下，",
        "您好，请问",
        "帮我看看，",
        "不好意思打扰一下，找了半天没找到答案，",
        "朋友总问我这个问题，",
    ),
}
_AFTER = {
    "en": (" Thanks!", " Thank you.", " please", " Many thanks", " Can you help?"),
    "zh": ("谢谢", "，谢谢！", "，麻烦了", "，求解答", " 急"),
}
# Two ways to write the same, whichever way round.
_TWINS = {
    "en": (
        ("What is", "What's"), ("Where is", "Where's"), ("How is", "How's"), ("I am", "I'm"), ("I would", "I'd"),
        ("I have to", "I've got to"), ("does not", "doesn't"), ("do not", "don't"), ("can not", "can't"),
        ("it is", "it's"), ("How do I", "How can I"), ("How can I", "How to"), ("Can I", "May I"),
        ("Where can I", "Where do I"), ("I want to", "I wanna"), ("and", "&"), ("you", "u"),
        ("Is there", "Do you have"),
    ),
    "zh": (
        ("为什么", "为啥"), ("什么", "啥"), ("怎么", "咋"), ("怎么", "怎样"), ("多长时间", "多久"), ("有没有", "有无"),
        ("如何", "怎么"), ("哪里", "哪儿"), ("哪个", "哪一个"), ("我想", "我要"), ("账户", "帐户"),
    ),
}  # fmt: skip
_LONG_WORD = re.compile(r"[a-z]{6,}")
_END_MARKS = "?？.。!！"


def slip(form: str, rng: random.Random) -> str:
    """One word of the form with two letters changed round, one lost or one doubled."""
    slots = [found.span() for found in SLOT.finditer(form)]
    words = [
        word.span()
        for word in _LONG_WORD.finditer(form)
        if not any(start <= word.start() < end for start, end in slots)
    ]
    if not words:
        return form
    start, end = rng.choice(words)
    place = rng.randrange(start + 1, end - 2)
    first, second = form[place], form[place + 1]
    changed = rng.choice((second + first, first, first + first + second))
    return form[:place] + changed + form[place + 2 :]


def roughen(text: str, language: str, rng: random.Random) -> str:
    """The text in another dress: each change comes or not, as the generator says."""
    for chance, change in _CHANGES:
        if rng.random() < chance:
            text = change(text, language, rng)
    return text


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _polite_before(text: str, language: str, rng: random.Random) -> str:
    return rng.choice(_BEFORE[language]) + text


def _polite_after(text: str, language: str, rng: random.Random) -> str:
    return text + rng.choice(_AFTER[language])


def _twin(text: str, language: str, rng: random.Random) -> str:
    options = [
        (old, new)
        for pair in _TWINS[language]
        for old, new in (pair, pair[::-1])
        if re.search(_whole(old, language), text)
    ]
    if not options:
        return text
    old, new = rng.choice(options)
    return re.sub(_whole(old, language), new, text, count=1)


def _whole(words: str, language: str) -> str:
    """Not inside another word; Chinese has no gaps between words."""
    return rf"(?<!\w){re.escape(words)}(?!\w)" if language == "en" else re.escape(words)


def _lower(text: str, language: str, rng: random.Random) -> str:
    return text.lower() if language == "en" else text


def _no_mark(text: str, language: str, rng: random.Random) -> str:
    return text.rstrip(_END_MARKS)


def _other_mark(text: str, language: str, rng: random.Random) -> str:
    return text.rstrip(_END_MARKS) + rng.choice(("?", "？", "??", "!", ""))


_Change = Callable[[str, str, random.Random], str]
_CHANGES: tuple[tuple[float, _Change], ...] = (
    (0.35, _twin), (0.15, _no_mark), (0.1, _other_mark), (0.15, _polite_before), (0.1, _polite_after), (0.2, _lower),
)  # fmt: skip
