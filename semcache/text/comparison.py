"""Whether the answer that a model makes now says something else than the stored one that was served: a proxy.

Pure. Nobody knows the right answer here. Two answers of a model differ in words when they mean the same, and share most
words when one *not* makes them opposites, so every bound is a choice, on the side of calling them the same: an alarm
costs a rule its hits. What tells them apart is where an answer says what it has to say, its first sentence.
"""

from __future__ import annotations

import re

from semcache.text.agreement import numbers_of, words_of
from semcache.text.normalize import canonical
from semcache.text.reading import read

# A verifier's score is the probability that two texts want or say the same; it has learned from questions, so on
# statements it is a proxy of its own.
OTHERWISE_BELOW = 0.5
# Of 999 statements that were said in other words 3 share less; of unrelated paragraphs of one manual 3 of 4 do.
OTHER_WORDS_BELOW = 0.3
# Of content words. From here on a *not* is what makes the difference; of the 999 statements 2 are said once with one
# and once without, from 0.6 on it would be 25.
NEARLY_THE_SAME_FROM = 0.9
MAX_SENTENCE_CHARS = 300

_END = re.compile(r"(?<=[。！？])|(?<=[.!?])\s|\n")
_MARKS = "#*->_` \t"


def first_sentence(answer: str) -> str:
    """Where an answer says what it has to say; marks of a heading or a list are no part of it."""
    sentences = (part.strip(_MARKS) for part in _END.split(answer))
    return next((sentence for sentence in sentences if sentence), "")[:MAX_SENTENCE_CHARS]


def says_otherwise(served: str, made: str, score: float | None = None) -> bool:
    """Whether `made` is another answer than `served`; `score` is a verifier's on their first sentences, if it gave one.

    Never when both are the same text. Else when the first sentences name numbers and have none in common (a price, a
    date, a count: what is asked for most often and forgiven least), or are the same but for a negation. Else the
    verifier decides; without one, answers that share hardly a word are different ones.
    """
    if canonical(served) == canonical(made):
        return False
    one, other = first_sentence(served), first_sentence(made)
    numbers, others = numbers_of(one), numbers_of(other)
    if numbers and others and numbers.isdisjoint(others):
        return True
    if _differ_by_a_not(one, other):
        return True
    if score is not None:
        return score < OTHERWISE_BELOW
    return _words_shared(served, made) < OTHER_WORDS_BELOW


def _differ_by_a_not(one: str, other: str) -> bool:
    left, right = read(one), read(other)
    if left.is_negated == right.is_negated or not left.words or not right.words:
        return False
    words, others = set(left.words), set(right.words)
    return 2 * len(words & others) / (len(words) + len(others)) >= NEARLY_THE_SAME_FROM


def _words_shared(one: str, other: str) -> float:
    """The share of the shorter one's words that the other has, too: how much is said beside it does not matter. 1.0
    where one of them has no words."""
    left, right = words_of(one), words_of(other)
    if not left or not right:
        return 1.0
    return (left & right).total() / min(left.total(), right.total())
