"""A question read for comparison: its content words, numbers, negation, opposites, persons and what it asks for.

Pure. One reading per text; `guard` compares two of them. English words are brought to a common stem, Chinese stays
characters once function words are out and synonyms are unified (no segmenter is needed to see that one differs).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from semcache.text import lexicon
from semcache.text.numerals import calendar_token, in_digits, number_word

_TOKEN = re.compile(
    r"[a-z\u00c0-\u024f]+\d[a-z0-9]*|\d+(?:[.:/]\d+)*|[a-z\u00c0-\u024f]+(?:'[a-z]+)?|[\u3400-\u9fff]|[\u3040-\u30ff]+|[\uac00-\ud7af]+"
)
_IS_NUMBER = re.compile(r"\d")
_TURN_ON_OR_OFF = re.compile(r"\b(?:turn|switch)(?:s|es|ed|ing)?\b((?: [\w'-]+){0,4}?) (on|off)\b")
_RELATIONS_EN = ("from", "to", "into", "than", "by", "before", "after", "over", "under")
_RELATION_ZH = re.compile("[到比给向对把被转换兑借欠赢]|超过|大于|小于|高于|低于|打败|属于")
_HAN = re.compile(r"[\u3400-\u9fff]")
# Who asks for a translation of "thank you" is not being polite: there every word counts.
ABOUT_WORDS = "about words"
_ABOUT_WORDS = re.compile(lexicon.ABOUT_WORDS, re.IGNORECASE)
_POSSESSIVE = re.compile(r"\b([a-z]{2,})'s ([a-z]{2,})\b")
_IS_SHORT = re.compile(r"\b(what|where|who|how|when|why|it|that|there)'?s\b")
# A capital inside a sentence: a name, whose spelling counts.
_NAME = re.compile(r"(?<=[a-z0-9,] )[A-Z][a-z\u00c0-\u024f]+\b")
_SMALL_WORD = re.compile(r"\b[a-z]{3,}\b")


@dataclass(frozen=True, slots=True)
class Reading:
    """`words` are content in order and `spelt` is how they were written; `numbers` come with what they count; `sides`
    are (choice, side) of known opposites; `negations` are the number of
    content words before each; `firm_words` may not change places."""

    tokens: tuple[str, ...]
    words: tuple[str, ...]
    spelt: dict[str, str]
    numbers: tuple[tuple[str, str], ...]
    number_order: tuple[str, ...]
    dates: frozenset[str]
    is_negated: bool
    negations: tuple[int, ...]
    names: tuple[str, ...]
    sides: frozenset[tuple[int, int]]
    persons: frozenset[int]
    asks_for: str
    relations: frozenset[tuple[str, str]]
    relations_zh: frozenset[tuple[str, str, str]]
    firm_words: tuple[str, ...]
    is_chinese: bool


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    is_about_words = _ABOUT_WORDS.search(text) is not None
    text = text if is_about_words else _without_courtesies(text)
    plain = _unified(in_digits(text))
    kind = ABOUT_WORDS if is_about_words else _asks_for(plain)
    tokens = _tokens(plain, kind)
    words = _content_words(tokens, kind)
    return Reading(
        tokens=tokens,
        words=words,
        spelt={stem(token): _bare(token) for token in tokens},
        numbers=_numbers(tokens),
        number_order=tuple(token for token in tokens if _is_number(token)),
        dates=frozenset(filter(_is_calendar, words)),
        is_negated=_is_negated(tokens, plain),
        negations=_negations(plain, kind),
        names=tuple(name for name in _names(text) if name in words),
        sides=_sides(tokens, plain),
        persons=_persons(tokens, plain),
        asks_for=kind,
        relations=_relations(tokens),
        relations_zh=_relations_zh(plain, kind),
        firm_words=_firm_words(plain, kind),
        is_chinese=_HAN.search(plain) is not None,
    )


def _without_courtesies(text: str) -> str:
    while (shorter := _COURTESIES.sub("", text)) not in ("", text):
        text = shorter
    return text


def _unified(text: str) -> str:
    text = re.sub(
        r"n't\b",
        " not",
        text.replace("can't", "can not").replace("won't", "will not").replace("cannot", "can not"),
    )
    text = _POSSESSIVE.sub(r"\2 of \1", _IS_SHORT.sub(r"\1 is", text))
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    text = _TURN_ON_OR_OFF.sub(lambda match: ("enable" if match[2] == "on" else "disable") + match[1], text)
    for pattern, replacement in _SYNONYM_PATTERNS_ZH:
        text = pattern.sub(replacement, text)
    return text


def _without_function_zh(text: str) -> str:
    return _FUNCTION_ZH.sub(" ", text)


def _normalised(token: str) -> str:
    """The token without possessive, as digits or calendar token where it is one."""
    token = token.removesuffix("'s").split("'")[0]
    return number_word(token) or calendar_token(token) or token


def _is_content(token: str, kind: str) -> bool:
    if kind == ABOUT_WORDS:
        return not _is_number(token)
    is_said = token in lexicon.FUNCTION_EN or token in lexicon.SAID_BY_KIND.get(kind, ())
    return not is_said and not _is_number(token)


def stem(word: str) -> str:
    """A common form of an English word's inflections, then of its synonyms; other words as they are."""
    known = _CANONICAL_EN.get(word)
    if known:
        return known
    bare = _bare(word)
    return _CANONICAL_EN.get(bare, bare)


def _bare(word: str) -> str:
    if not word.isascii() or not word.isalpha() or len(word) <= 3:
        return word
    for suffix, replacement in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ing", ""),
        ("ed", ""),
        ("es", "e"),
        ("s", ""),
    ):
        if word.endswith(suffix) and not word.endswith("ss") and len(word) - len(suffix) >= 3:
            word = word.removesuffix(suffix) + replacement
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiousl":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def _is_number(token: str) -> bool:
    return token[0].isdigit()


def _is_calendar(word: str) -> bool:
    return word.startswith(("month", "weekday")) and word[-1].isdigit()


def _numbers(tokens: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each number with the content word that follows it, or "": sorted, so that order does not matter."""
    found = []
    for place, token in enumerate(tokens):
        if _is_number(token):
            after = (stem(word) for word in tokens[place + 1 : place + 3] if not _is_number(word))
            counted = next((word for word in after if not _is_calendar(word)), "")
            found.append((token, counted))
    return tuple(sorted(found))


def _is_negated(tokens: tuple[str, ...], plain: str) -> bool:
    if any(token in lexicon.NEGATION_EN for token in tokens):
        return True
    return any(sign in _NOT_A_NEGATION_ZH.sub("", plain) for sign in lexicon.NEGATION_ZH)


def _negations(plain: str, kind: str) -> tuple[int, ...]:
    """How many content words stand before each negation."""
    without_lookalikes = _NOT_A_NEGATION_ZH.sub("", plain)
    return tuple(
        len(_content_words(_tokens(without_lookalikes[: sign.start()], kind), kind))
        for sign in _NEGATION.finditer(without_lookalikes)
    )


def _tokens(plain: str, kind: str) -> tuple[str, ...]:
    text = plain if kind == ABOUT_WORDS else _without_function_zh(plain)
    return tuple(_normalised(token) for token in _TOKEN.findall(text))


def _content_words(tokens: Iterable[str], kind: str) -> tuple[str, ...]:
    return tuple(stem(token) for token in tokens if _is_content(token, kind))


def _sides(tokens: tuple[str, ...], plain: str) -> frozenset[tuple[int, int]]:
    present = set(tokens)
    found = {place for token in present for place in _SIDE_OF_EN.get(token, ())}
    if _HAN.search(plain):
        found |= {place for word, place in _SIDE_OF_ZH if word in plain}
    return frozenset(found)


def _names(text: str) -> tuple[str, ...]:
    if len(_NAME.findall(text)) > 1 and not _SMALL_WORD.search(text):
        return ()  # a headline
    return _content_words((_normalised(name.lower()) for name in _NAME.findall(text)), "")


def _persons(tokens: tuple[str, ...], plain: str) -> frozenset[int]:
    english = {number for number, words in enumerate(lexicon.PERSONS_EN) if words & set(tokens)}
    chinese = {
        number for number, signs in enumerate(lexicon.PERSONS_ZH) if any(sign in plain for sign in signs)
    }
    return frozenset(english | chinese)


def _asks_for(text: str) -> str:
    return next((kind for kind, pattern in _QUESTION_KINDS if pattern.search(text)), "")


def _relations(tokens: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """(relation word, first content word after it) for each English word that gives its neighbours a direction."""
    found = []
    for place, token in enumerate(tokens):
        if token in _RELATIONS_EN:
            after = next((stem(word) for word in tokens[place + 1 :] if word not in lexicon.FUNCTION_EN), "")
            found.append((token, after))
    return frozenset(found)


def _relations_zh(plain: str, kind: str) -> frozenset[tuple[str, str, str]]:
    """Each Chinese word that gives its neighbours a direction, with the content on either side of it."""
    plain = _MOVABLE_ZH.sub(" ", plain)
    found = set()
    for relation in _RELATION_ZH.finditer(plain):
        before = _content_words(_tokens(plain[: relation.start()], kind), kind)
        after = _content_words(_tokens(plain[relation.end() :], kind), kind)
        found.add(("".join(before[-2:]), relation[0], "".join(after[:2])))
    return frozenset(found)


def _firm_words(plain: str, kind: str) -> tuple[str, ...]:
    """The content words in order, without those that may stand anywhere."""
    words = _content_words(_tokens(_MOVABLE_ZH.sub(" ", plain), kind), kind)
    return tuple(word for word in words if word not in lexicon.MOVABLE_EN and not _is_calendar(word))


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


_COURTESIES = re.compile(
    rf"^(?:{'|'.join(lexicon.COURTESIES_BEFORE)})(?![\w'-])[\s,:;!.，。！：]*"
    # Only from where a row of marks begins: from each of them it would take time with the square of their number.
    rf"|(?<![\s,.，。!?？])[\s,.，。!?？]+(?:{'|'.join(lexicon.COURTESIES_AFTER)})[\s.!。！?？]*$",
    re.IGNORECASE,
)
_CANONICAL_EN = {
    form: _bare(group[0]) for group in lexicon.SYNONYMS_EN for word in group for form in (word, _bare(word))
}
_SYNONYM_PATTERNS_ZH = [(re.compile(_alternatives(group)), group[0]) for group in lexicon.SYNONYMS_ZH]
_PHRASES = [
    (re.compile(pattern), replacement) for pattern, replacement in (*lexicon.PHRASES_EN, *lexicon.PHRASES_ZH)
]
_FUNCTION_ZH = re.compile(_alternatives(lexicon.FUNCTION_ZH))
_NOT_A_NEGATION_ZH = re.compile(_alternatives(lexicon.NOT_A_NEGATION_ZH))
_MOVABLE_ZH = re.compile(_alternatives(lexicon.MOVABLE_ZH))
_NEGATION = re.compile(rf"\b(?:{_alternatives(lexicon.NEGATION_EN)})\b|{_alternatives(lexicon.NEGATION_ZH)}")
_QUESTION_KINDS = [(kind, re.compile(pattern)) for kind, pattern in lexicon.QUESTION_KINDS]
_SIDE_OF_EN: dict[str, set[tuple[int, int]]] = {}
for _choice, _choices in enumerate(lexicon.CONTRASTS_EN):
    for _side, _words in enumerate(_choices):
        for _word in _words.split():
            _SIDE_OF_EN.setdefault(_word, set()).add((_choice, _side))
_SIDE_OF_ZH = [
    (word, (len(lexicon.CONTRASTS_EN) + choice, side))
    for choice, choices in enumerate(lexicon.CONTRASTS_ZH)
    for side, words in enumerate(choices)
    for word in words.split()
]
