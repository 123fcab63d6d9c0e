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
    "zh": ("请问", "你好，", "麻烦问一下，", "想问下，", "您好，请问", "帮我看看，"),
}
_AFTER = {
    "en": (" Thanks!", " Thank you.", " please", " Many thanks", " Can you help?"),
    "zh": ("谢谢", "，谢谢！", "，麻烦了", "，求解答", " 急"),
}
_CONTRACTIONS = (
    ("What is", "What's"), ("Where is", "Where's"), ("How is", "How's"), ("I am", "I'm"), ("I would", "I'd"),
    ("I have to", "I've got to"), ("does not", "doesn't"), ("do not", "don't"), ("can not", "can't"), ("it is", "it's"),
)  # fmt: skip
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


def _contract(text: str, language: str, rng: random.Random) -> str:
    """Whichever way round: people write both."""
    for long, short in _CONTRACTIONS:
        if long in text:
            return text.replace(long, short)
        if short in text:
            return text.replace(short, long)
    return text


def _lower(text: str, language: str, rng: random.Random) -> str:
    return text.lower() if language == "en" else text


def _no_mark(text: str, language: str, rng: random.Random) -> str:
    return text.rstrip(_END_MARKS)


def _other_mark(text: str, language: str, rng: random.Random) -> str:
    return text.rstrip(_END_MARKS) + rng.choice(("?", "？", "??", "!", ""))


_Change = Callable[[str, str, random.Random], str]
_CHANGES: tuple[tuple[float, _Change], ...] = (
    (0.3, _contract), (0.15, _no_mark), (0.1, _other_mark), (0.15, _polite_before), (0.1, _polite_after), (0.2, _lower),
)  # fmt: skip
