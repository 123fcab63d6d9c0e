"""What of a conversation an answer hangs on, and whether two conversations are the same as far as that goes.

Pure. A message that stands alone hangs on nothing. Any other hangs on all that was said, small talk left out: two such
conversations are the same only where every exchange has its equal in the same place, what the person said and what was
answered. Nothing else is dropped but an aside that its speaker calls one. Where the guard finds no difference but words
without their equal, a second opinion may decide; evidence of a difference always decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from semcache.text import guard
from semcache.text.followup import stands_alone
from semcache.text.lexicon import FUNCTION_EN
from semcache.text.normalize import canonical
from semcache.text.reading import read, stem
from semcache.text.wording import MAX_SEMANTIC_CHARS, Lasting, lasting

# Longer histories are compared as a whole only: by their exact text.
MAX_TURNS_CHARS = 12_000
# The encoder reads 512 tokens.
MAX_EMBEDDED_CHARS = 1500
# So many parts of two conversations may be worded differently, and so many of them need a second opinion: the guard's
# work holds up the process.
MAX_REWORDED, MAX_DOUBTS = 8, 4

Exchange = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`why` is empty where nothing speaks against it; each of `doubts` is a pair that a second opinion must confirm."""

    why: str = ""
    doubts: tuple[tuple[str, str], ...] = ()


def hangs_on(text: str, turns: Sequence[str]) -> tuple[str, ...] | None:
    """What the answer to the canonical `text` hangs on of `turns` (said, answered, said, answered ...): () for
    nothing, None where that cannot be told, so that only the same history will do."""
    if (
        len(text) > MAX_SEMANTIC_CHARS
    ):  # before anything reads it: that takes time with the square of its length
        return None
    exchanges = _exchanges(turns)
    if stands_alone(text, [said for said, _ in exchanges]):
        return ()
    if not exchanges:
        return None
    says_something = read(text).words or read(text).asks_for
    if _POINTS_INTO_ANSWER.search(text) or not says_something:
        return None
    kept = [part for exchange in _condensed(exchanges) for part in exchange]
    return tuple(kept) or None


def embedded(text: str, context: Sequence[str]) -> str:
    """The text whose vector finds `text` asked in this context: what was said last comes first, if it is too long."""
    said = [*reversed(context[::2])]
    return " ".join([text, *said])[: max(MAX_EMBEDDED_CHARS, len(text))]


def compare(stored: Sequence[str], asked: Sequence[str], text: str) -> Comparison:
    """Whether an answer that hangs on `stored` may answer `text`, which hangs on `asked`."""
    if bool(stored) != bool(asked):
        return Comparison("only one of them hangs on what was said before")
    longer, shorter = _pairs_of(stored), _pairs_of(asked)
    if len(longer) < len(shorter):
        longer, shorter = shorter, longer
    return min(
        (_compared(kept, shorter) for kept in _without_aside(longer, len(longer) - len(shorter), text)),
        key=lambda found: (bool(found.why), len(found.doubts)),
        default=Comparison("one of them says more"),
    )


def is_echoed(answer: str, text: str, turns: Sequence[str]) -> bool:
    """Whether `answer` takes up a word that its asker said before and not in `text`: then it hangs on more than the
    question, whatever the question looks like."""
    said = _all_words(*said_in(turns)) - _all_words(text)
    return not said.isdisjoint(_all_words(answer))


def is_for_today(text: str, context: Sequence[str]) -> bool:
    """Whether the answer ends with the day: what is asked is said of today, or what it hangs on is."""
    return any(lasting(said) is not Lasting.AS_THE_RULE_SAYS for said in (text, *said_in(context)))


def said_in(context: Sequence[str]) -> Sequence[str]:
    """Of a context or of turns what the person said."""
    return context[::2]


def _exchanges(turns: Sequence[str]) -> list[Exchange]:
    """[] where the turns do not go back and forth or are too long to compare."""
    if len(turns) % 2 or sum(map(len, turns)) > MAX_TURNS_CHARS:
        return []
    return _pairs_of([canonical(turn) for turn in turns])


def _pairs_of(parts: Sequence[str]) -> list[Exchange]:
    return list(zip(parts[::2], parts[1::2], strict=True))


def _condensed(exchanges: Sequence[Exchange]) -> Iterator[Exchange]:
    for said, answered in exchanges:
        exchange = _without_small_talk(said), _without_small_talk(answered)
        if any(exchange):
            yield exchange


def _without_small_talk(text: str) -> str:
    if len(text) > MAX_SEMANTIC_CHARS:
        return text
    return " ".join(sentence for sentence in _SENTENCE_END.split(text) if not _is_small_talk(sentence))


def _is_small_talk(sentence: str) -> bool:
    return all(word in _SMALL_WORDS for word in _WORD.findall(_SMALL_PHRASES.sub(" ", sentence.lower())))


def _without_aside(longer: list[Exchange], num_more: int, text: str) -> Iterator[list[Exchange]]:
    """Every way to take `num_more` neighbouring exchanges out that begin with words like "off topic" and speak of
    nothing that `text` speaks of."""
    if num_more == 0:
        yield longer
        return
    asked = set(read(text).words)
    for start in range(len(longer) - num_more + 1):
        aside = longer[start : start + num_more]
        is_apart = all(asked.isdisjoint(read(said).words) for said, _ in aside)
        if _CALLS_IT_ASIDE.search(aside[0][0]) and is_apart:
            yield longer[:start] + longer[start + num_more :]


def _compared(one: list[Exchange], other: list[Exchange]) -> Comparison:
    parts = zip(chain.from_iterable(one), chain.from_iterable(other), strict=True)
    reworded = [(left, right) for left, right in parts if left != right]
    if len(reworded) > MAX_REWORDED:
        return Comparison("too much is worded differently")
    doubts: list[tuple[str, str]] = []
    for left, right in reworded:
        why = _difference(left, right)
        if why is None:
            continue
        if why or len(doubts) == MAX_DOUBTS:
            return Comparison(why or "too much is worded differently")
        doubts.append((left, right))
    return Comparison(doubts=tuple(doubts))


def _difference(left: str, right: str) -> str | None:
    """None where the two say the same, "" where only words lack their equal, else the evidence against it."""
    if not left or not right or max(len(left), len(right)) > MAX_SEMANTIC_CHARS:
        return "only one of them says it" if not (left and right) else "too long to compare"
    found = guard.verdicts(left, right)
    if guard.may_serve(found):
        return None
    if guard.may_be_overruled(found) and _marks(left) == _marks(right):
        return ""
    return next((verdict.why for verdict in found if not verdict.passed), "")


def _marks(text: str) -> frozenset[str]:
    """Whatever has a digit, or a capital inside a sentence: numbers, codes, names."""
    return frozenset(mark.lower() for mark in _MARK.findall(text))


def _all_words(*texts: str) -> set[str]:
    """The words with content, of Chinese each two characters; of long answers, too, which are not read as questions."""
    found: set[str] = set()
    for text in texts:
        words = (word.split("'")[0] for word in _WORD.findall(text.lower()))
        found.update(stem(word) for word in words if len(word) > 1 and word not in FUNCTION_EN)
        found.update("".join(pair) for run in _HAN.findall(text) for pair in pairwise(run))
    return found


_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_MARK = re.compile(r"\b(?=\w*\d)\w+|(?<=[\w,;:)'\"] )(?!I\b)[A-Z][\w-]*")
# What is agreed to, or chosen from, stands in the answer before.
_POINTS_INTO_ANSWER = re.compile(
    r"^\W*(?:(?:ok|okay|yes|yeah|yep|yup|sure|no|nope|nah|oh|ah|right|great|fine|please|go|on|ahead|do|it|that|then|let's|"
    r"lets|sounds|good|perfect|just|alright|all|both|neither|either|thanks|thank|you|and|so|well|of|course|"
    r"absolutely|definitely|confirm|confirmed|agreed|proceed|continue|deal|book|send|me)\b\W*)+$|"
    r"\b(?:first|second|third|fourth|last|latter|former|other|next|morning|afternoon|evening|cheap\w*|bigger|smaller|"
    r"early|earlier|later|\d+(?:st|nd|rd|th)) (?:one|ones|option|slot|choice|offer|point|step|item)\b|"
    r"\b(?:options?|number|choice|point|step) (?:\d+|[a-d]|one|two|three|four)\b|"
    r"\bgo (?:ahead|on|for)\b|\bdo (?:it|that|so|both)\b|"
    r"\b(?:i'll|i will|i'd|let's) (?:take|have|go|pick|choose|do)\b|"
    r"\byou (?:said|mentioned|suggested|recommended|listed)\b|"
    r"^[好行嗯对是可以的吧呀啊要不了没问题当然继续请谢麻烦您你，,。.!！ ]+$|"
    r"第[一二三四五六七八九十\d]+[个种条点项步]|前者|后者|你(?:刚才)?(?:说|提到|推荐|建议|列)的?|就(?:这|那)|[这那][个种些]?(?:方案|选项|办法)|选项",
    re.IGNORECASE,
)
_CALLS_IT_ASIDE = re.compile(
    r"^(?:[^.?!]{0,25}\b)?(?:unrelated|off[- ]topic|side (?:question|note)|random (?:question|q|one)|"
    r"different (?:topic|subject|question)|on another note)\b|^.{0,6}(?:题外话|另外一件事|不相关|换个话题|岔开)",
    re.IGNORECASE,
)
_SMALL_PHRASES = re.compile(
    r"\b(?:no (?:worries|problem|rush|hurry)|not at all|don't worry|(?:i )?hope you(?:'re| are)(?: doing)? well|"
    r"bear with me|first time using this(?: chat)?(?: thing)?|fingers crossed|fair enough|makes sense|got it|"
    r"you're welcome|my pleasure|(?:glad|happy) to (?:hear (?:it|that)|help)|glad (?:it|that) helped|of course|"
    r"(?:is there )?anything else(?: (?:i can|you) (?:help(?: you)? with|need))?(?: today)?|"
    r"thanks? (?:so much|a lot|again)|have a (?:nice|good|great|lovely) (?:day|evening|weekend)|"
    r"(?:that is|that's|this is|that was) (?:\w+ly )?"
    r"(?:helpful|great|good|perfect|lovely|handy))\b|"
    r"你好|您好|大家好|早上好|下午好|晚上好|谢谢你?您?|多谢|感谢|好的|好吧|嗯+|哦+|哈+|呵+|明白了?|知道了|了解了?|不客气|没关系|"
    r"不用谢|辛苦了?|太好了|麻烦你?您?了?|再见|拜拜|还有(?:什么|其他)(?:可以帮您?你?的|问题)吗|很高兴(?:能)?帮到?(?:你|您)",
)
_SMALL_WORDS_TEXT = """
hi hiya hello hey there morning afternoon evening good thanks thank you cheers ta lovely great perfect brilliant
nice cool ok okay fab awesome excellent wonderful lol haha hahaha hehe ha hmm ugh oh ooh ah aha wow phew
please sorry very really so much again everyone all"""
_SMALL_WORDS = frozenset(_SMALL_WORDS_TEXT.split())
