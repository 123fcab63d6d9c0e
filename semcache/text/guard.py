"""May the answer to one question serve another? Evidence from the words, where vectors cannot tell opposites apart.

Pure: two texts in, verdicts out, each with its reason. Knows no similarity and no rule. Every check can only
forbid; the guard is wrong in the safe direction when it does not know a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from semcache.text.reading import Reading, read
from semcache.text.spelling import is_misspelt

Check = Callable[[Reading, Reading], str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check found; `why` is empty when it passed."""

    check: str
    passed: bool
    why: str = ""


def verdicts(stored: str, asked: str) -> tuple[Verdict, ...]:
    """One verdict per check, for the question of a stored answer and the question asked now."""
    one, other = read(stored), read(asked)
    reasons = ((name, check(one, other)) for name, check in CHECKS.items())
    return tuple(Verdict(name, not why, why) for name, why in reasons)


def may_serve(found: Iterable[Verdict]) -> bool:
    return all(verdict.passed for verdict in found)


def may_be_overruled(found: Iterable[Verdict]) -> bool:
    """Whether a second opinion may serve after all: no evidence of a difference, only words without their equal."""
    return all(verdict.passed or verdict.check in OVERRULED for verdict in found)


def _numbers(one: Reading, other: Reading) -> str:
    """The same numbers, and where there are several, counting the same things."""
    left, right = Counter(number for number, _ in one.numbers), Counter(number for number, _ in other.numbers)
    if left != right:
        return _differ(left.elements(), right.elements())
    counts_other = {counted for _, counted in one.numbers} <= set(other.words)
    if one.numbers != other.numbers and (len(left) > 1 or (counts_other and one.numbers[0][1])):
        return "the numbers count different things"
    counts = Counter(counted for _, counted in one.numbers if counted)
    if one.number_order != other.number_order and any(count > 1 for count in counts.values()):
        return "numbers of the same things stand in another order"
    return ""


def _dates(one: Reading, other: Reading) -> str:
    return "" if one.dates == other.dates else _differ(one.dates, other.dates)


def _negation(one: Reading, other: Reading) -> str:
    if one.is_negated != other.is_negated:
        return "only one of them says no"
    if one.words == other.words and one.negations != other.negations:
        # "Why doesn't it start" has its negation in front of what "why does it not start" has it behind.
        is_inverted = one.asks_for == other.asks_for == "why" and 0 in one.negations + other.negations
        return "" if is_inverted else "they deny different things"
    return ""


def _opposites(one: Reading, other: Reading) -> str:
    """Where both choose a side of a known pair of opposites, the same side or sides."""
    for choice in {choice for choice, _ in one.sides} & {choice for choice, _ in other.sides}:
        left = {side for kind, side in one.sides if kind == choice}
        right = {side for kind, side in other.sides if kind == choice}
        if left != right:
            return "they are on different sides of a pair of opposites"
    return ""


def _persons(one: Reading, other: Reading) -> str:
    are_apart = one.persons and other.persons and not one.persons & other.persons
    return "they speak of different persons" if are_apart else ""


def _asked_for(one: Reading, other: Reading) -> str:
    """What is asked, where both say it; where, when, who and how much must be said by both."""
    kinds = {one.asks_for, other.asks_for}
    are_apart = len(kinds) == 2 and ("" not in kinds or kinds & MUST_BE_SAID)
    return (
        f"one asks {one.asks_for or 'nothing of it'}, the other {other.asks_for or 'nothing of it'}"
        if are_apart
        else ""
    )


def _names(one: Reading, other: Reading) -> str:
    """A name that one of them has and the other has nowhere, not even written small."""
    missing = (set(one.names) - set(other.words)) | (set(other.names) - set(one.words))
    return f"{' '.join(sorted(missing))} is named by one only" if missing else ""


def _direction(one: Reading, other: Reading) -> str:
    """The same words, but what comes from where, or who does it to whom, is exchanged."""
    if Counter(one.words) != Counter(other.words):
        return ""
    relations = {word for word, _ in one.relations} & {word for word, _ in other.relations}
    if any(_related(one, word).isdisjoint(_related(other, word)) for word in relations):
        return "what the words relate is exchanged"
    if one.firm_words == other.firm_words or (len(one.relations) > 1 and one.relations == other.relations):
        return ""  # "from A to B" and "to B from A"
    if one.names != other.names and set(one.names) == set(other.names) and len(one.names) == len(other.names):
        return "two names are exchanged"
    if _is_exchange(one.firm_words, other.firm_words):
        return "two words are exchanged around the others"
    is_rotated = _is_rotated(one.firm_words, other.firm_words)
    if one.is_chinese:
        # "取消订单" and "订单取消": a topic may stand in front where no word relates it to another one.
        is_moved = one.relations_zh == other.relations_zh if one.relations_zh else is_rotated
    else:
        is_moved = Counter(one.tokens) != Counter(other.tokens) or is_rotated
    return "" if is_moved else "the same words stand in another order"


def _related(reading: Reading, relation: str) -> set[str]:
    return {after for word, after in reading.relations if word == relation}


def _is_exchange(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether exactly two words that are not neighbours have changed places: "dogs chase cats"."""
    if len(one) != len(other):
        return False
    places = [place for place, (left, right) in enumerate(zip(one, other, strict=True)) if left != right]
    return len(places) == 2 and places[1] - places[0] > 1


def _is_rotated(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return any(one[place:] + one[:place] == other for place in range(1, len(one)))


def _content(one: Reading, other: Reading) -> str:
    """Every content word has its equal, synonym or obvious misspelling on the other side."""
    left, right = set(one.words) - set(other.words), set(other.words) - set(one.words)
    for word in sorted(left):
        twin = next((slip for slip in sorted(right) if is_misspelt(one.spelt[word], other.spelt[slip])), None)
        if twin:
            left.discard(word)
            right.discard(twin)
    return _differ(left, right) if left or right else ""


def _differ(left: Iterable[str], right: Iterable[str]) -> str:
    return f"{' '.join(sorted(left)) or 'nothing'} ≠ {' '.join(sorted(right)) or 'nothing'}"


# Kinds of questions that nobody asks without saying so.
MUST_BE_SAID = frozenset({"when", "where", "who", "why", "how far", "how tall", "how often"})
OVERRULED = frozenset({"content"})
CHECKS: dict[str, Check] = {
    "numbers": _numbers,
    "dates": _dates,
    "negation": _negation,
    "opposites": _opposites,
    "persons": _persons,
    "question": _asked_for,
    "names": _names,
    "direction": _direction,
    "content": _content,
}
