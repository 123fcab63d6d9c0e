"""How far two answers say the same: a proxy from their words, for answers that nobody compares by hand.

Pure. Two answers with other numbers disagree, whatever else they share; wordings may differ. It cannot see a negation
that hides in one word, so it is shown as what it is and never serves anything.
"""

from __future__ import annotations

import re
from collections import Counter

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# A Chinese or Japanese character counts as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]+")


def agreement(one: str, other: str) -> float:
    """0 to 1: twice the words they share through all their words; 0 when their numbers differ."""
    if numbers_of(one) != numbers_of(other):
        return 0.0
    left, right = words_of(one), words_of(other)
    if not left or not right:
        return float(one.strip() == other.strip())
    return 2 * (left & right).total() / (left.total() + right.total())


def numbers_of(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def words_of(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))
