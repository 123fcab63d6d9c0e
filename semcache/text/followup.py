"""Whether a later message of a conversation means the same without what was said before it.

Pure: texts in, yes or no out. Wrong only to the careful side: whatever points back, leaves something out or takes up
what was spoken of is a follow-up. Two signs must come together, because no word betrays "which fee?" alone: nothing in
the message needs a history, and it brings a topic of its own that nobody spoke of so far. Knows English and Chinese;
later messages in other languages are all follow-ups.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from semcache.text import wording
from semcache.text.reading import read, stem

# Words with content in the message, and those of them that were not said before.
MIN_WORDS, MIN_NEW_WORDS = 3, 2
# A Chinese one needs more characters than this, since it leaves out what was said before without a trace.
MIN_HAN = 6

# Words around the message itself.
_OPENING = re.compile(
    r"^(?:(?:by the way|btw|(?:completely |totally )?(?:unrelated|off[- ]topic|random)(?: but)?|"
    r"separately|also|actually|"
    r"one (?:more|last|other)(?: thing| question)?|(?:last|final)(?: thing| question| one)|before i (?:go|forget)|"
    r"while i'm here|out of (?:interest|curiosity)|(?:just )?(?:wondering|curious)(?: if| whether)?|"
    r"(?:a )?(?:quick|different|another|unrelated|random|side|general) (?:question|thing|one|note)|"
    r"(?:can|could|would) you (?:please )?tell me(?: if| whether)?|(?:can|could|may) i (?:just )?ask(?: you)?|"
    r"i(?:'d| would) like to (?:know|ask)(?: if| whether)?|i was (?:just )?wondering(?: if| whether)?|"
    r"do you know(?: if| whether)?|"
    r"oh|ok|okay|thanks|thank you|great|perfect|lovely|brilliant|cool|hi|hello|hey|"
    r"顺便问一下|顺便问下|另外|对了|谢谢|请问|你好|您好)"
    r"[\s,.!:;，。！：-]+)+",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"[\s,.!?]+(?:please|thanks|thank you|cheers|many thanks|thanks in advance)[\s.!?]*$", re.IGNORECASE
)
_IS_ENGLISH = re.compile(
    r"\b(?:what|what's|how|which|when|when's|where|where's|who|why|does|do|can|are|the|of|you|your|tell|explain)\b",
    re.IGNORECASE,
)
# What these point to is a time or nothing at all.
_POINTS_NOWHERE = re.compile(
    r"\bat the same time\b|(?:(?<=\bis )|(?<=\bare ))there\b|\bthese days\b|"
    r"\b(?:this|next|last) (?:morning|evening|week|weekend|month|year|spring|summer|autumn|winter|site|"
    r"app|website|chat)\b|"
    r"\bfirst[- ](?:class|aid|time|name|floor)\b|\bsecond[- ]hand\b|\b(?:same|next)[- ]day\b|\bone[- ](?:way|off)\b|"
    r"\b(?:more than|at least|only|no) one\b|\bone of\b|\bmore (?:about|information|details)\b",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:it|its|it's|itself|he|she|him|his|her|hers|they|them|their|theirs|this|that|that's|these|those|there|here|"
    r"one|ones|both|either|neither|each other|same|another|other|others|instead|again|else|above|below|former|latter|"
    r"previous|next (?:ones?|steps?|options?|slots?)|following|first|second|third|rest|remaining|"
    r"extra|additional|separate|matching|compatible|similar|suitable|alternatives?|included|such|so far|as well|too|"
    r"still|already|actually|yet|anymore|back|continue|go on|go ahead|do so|yes|yeah|yep|no|nope|ok|okay|sure|"
    r"thanks|then|some(?:one|body|thing)|(?:my|your) (?:offer|suggestion|answer|list|last)|(?:did|have) you|"
    r"you (?:said|mentioned|wrote|suggested|recommended|listed))\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:bigger|smaller|larger|cheaper|faster|slower|better|worse|earlier|later|older|newer|longer|shorter|higher|"
    r"lower|darker|lighter|warmer|colder|more|less|fewer)\b(?!.*\bthan\b)",
    re.IGNORECASE,
)
_STARTS_AS_FOLLOW_UP = re.compile(
    r"^(?:and|or|but|so|because|what about|how about|why not|how come|what else|with|"
    r"(?:in|on|for|at)(?! (?:which|what)))\b",
    re.IGNORECASE,
)
# "How do I change my password" asks for everybody; "we" and what "I" did are the asker's own.
_ASKS_FOR_EVERYBODY = re.compile(
    r"^(?:how|where) (?:do|can|should|could) (?:i|we)\b.*|\b(?:do|can|could|should|would|may|must) (?:i|we)\b|"
    r"\b(?:i|we) (?:can|could|should|need to|have to|get to)\b",
    re.IGNORECASE,
)
_WANTS_IT_DONE = re.compile(r"^(?:please|(?:can|could|will|would) you (?!tell|explain))", re.IGNORECASE)
_OF_ONE_OCCASION = re.compile(r"\b(?:will|won't|did|didn't|has|hasn't|had|was|were)\b", re.IGNORECASE)
_PROVIDER = re.compile(r"\byour?\b", re.IGNORECASE)

_DEFINITE = re.compile(r"\bthe (?=([\w'-]+))", re.IGNORECASE)
_UNIQUE_TEXT = "council government police weather internet web world sun moon earth sea sky"
_UNIQUE = frozenset(_UNIQUE_TEXT.split())
# "the limit for taking cash", "the price of silver": said in full; "the Family plan" is named.
_SAID_IN_FULL = re.compile(
    r"(?:[\w'-]+ ){1,4}?(?:of|between) \w|(?:[\w'-]+ ){1,4}?for (?:[a-z-]+ing|an?|the)\b|"
    r"(?:[\w-]+ )?(?:age|deadline|way|time|place|steps|procedure|requirements) to [a-z]|(?:[a-z'-]+ )?[A-Z]"
)
# Of what? Unless that is said, somebody has said it before.
_RELATION = re.compile(
    r"\b(?:side effects?|symptoms?|ingredients?|dos(?:e|age)|population|capital|author|director|causes?|reasons?|"
    r"results?|advantages?|disadvantages?|pros|cons|benefits?|drawbacks?|risks?|differences?|examples?|features?|"
    r"requirements?|warranty|lifespan|purpose|meaning|origin|history|size|colou?rs?|weight|height|width|length|depth|"
    r"boiling point|melting point|calories|release date|battery life)\b(?! (?:of|between|for [a-z-]+ing|limit))",
    re.IGNORECASE,
)
# A capital or a digit inside: a name says what is spoken of.
_NAME = re.compile(r"(?<=[\w,'] )[A-Z][\w'-]+|\b(?=\w*[A-Za-z])\w*\d\w*\b")
_SAYS_LITTLE_TEXT = """
need want new use take get come long much many day time date way thing stuff year month week minute today now help know
send tell give make work pay cost price happen last total option good start end question charge ask please mean"""
_SAYS_LITTLE = frozenset(map(stem, _SAYS_LITTLE_TEXT.split()))

_POINTS_BACK_ZH = re.compile(
    r"[它他她这那其该此另]|前者|后者|刚才|刚刚|上面|以上|上述|前面|之前|剩下|其余|其他|别的|哪[个种款]|第[一二三四五六七八九十\d]+[个种条点项步]"
    r"|同样|一样|也|还|再|就|呢[?？]?$|的吗[?？]?$|继续|展开|详细|具体|你说|您说|为什么[?？]?$"
)
# Only what says in full what it is about: a definition, or a question with a name in it.
_IS_DEFINITION_ZH = re.compile(
    r"^什么(?:是|叫)[^?？]{2,}|[^?？]{2,}(?:是什么意思|的定义是什么|是什么[?？]?$)"
)
_NAME_ZH = re.compile(r"[A-Za-z]{2,}|《[^》]+》")


def stands_alone(text: str, earlier: Sequence[str]) -> bool:
    """Whether the canonical later message `text` needs nothing of `earlier`, what its writer said before it."""
    text = _CLOSING.sub("", _OPENING.sub("", text))
    if not wording.says_enough(text):
        return False
    match wording.language(text):
        case "latn":
            return _says_it_all(text, earlier) and _has_own_topic(text, earlier)
        case "zh":
            return _says_it_all_zh(text) and not _words(text) & _words(*earlier)
        case _:
            return False


def _says_it_all(text: str, earlier: Sequence[str]) -> bool:
    """No word points back, and what "the" and relations mean is said in the message itself."""
    text = _POINTS_NOWHERE.sub(" ", text)
    if _IS_ENGLISH.search(text) is None or wording.is_personal(_ASKS_FOR_EVERYBODY.sub(" ", text)):
        return False
    if any(sign.search(text) for sign in (_POINTS_BACK, _COMPARES, _STARTS_AS_FOLLOW_UP, _WANTS_IT_DONE)):
        return False
    is_named = _NAME.search(text) is not None
    return (is_named or _RELATION.search(text) is None) and _is_definite_in_full(text, earlier)


def _is_definite_in_full(text: str, earlier: Sequence[str]) -> bool:
    """What "the" stands before is unique, named or described, or, in a general question, was not spoken of so far."""
    is_general = _OF_ONE_OCCASION.search(text) is None
    spoken_of = _words(*earlier)
    for definite in _DEFINITE.finditer(text):
        head = definite[1].lower()
        is_new = is_general and stem(head) not in spoken_of
        if head not in _UNIQUE and not is_new and _SAID_IN_FULL.match(text[definite.end() :]) is None:
            return False
    return True


def _has_own_topic(text: str, earlier: Sequence[str]) -> bool:
    """A "you" counts as a word of the topic: who answers is the same for all who share a system prompt."""
    words = {word for word in _words(text) if word not in _SAYS_LITTLE}
    num_words = len(words) + (_PROVIDER.search(text) is not None)
    return num_words >= MIN_WORDS and len(words - _words(*earlier)) >= MIN_NEW_WORDS


def _says_it_all_zh(text: str) -> bool:
    num_han = sum("\u3400" <= char <= "\u9fff" for char in text)
    is_full = _NAME_ZH.search(text) is not None or _IS_DEFINITION_ZH.search(text) is not None
    is_long = num_han >= MIN_HAN or _IS_DEFINITION_ZH.search(text) is not None
    return is_full and is_long and not wording.is_personal(text) and _POINTS_BACK_ZH.search(text) is None


def _words(*texts: str) -> frozenset[str]:
    """The content words of the texts; of Chinese ones each two characters that stand together."""
    found: set[str] = set()
    for text in texts:
        words = read(text).words
        found.update(word for word in words if word.isascii())
        found.update(_pairs("".join(word for word in words if not word.isascii())))
    return frozenset(found)


def _pairs(text: str) -> set[str]:
    return {text[place : place + 2] for place in range(len(text) - 1)}
