"""Which questions may share their answers with others at all, whatever a rule says.

Pure, and wrong only to the careful side: what is refused here is its asker's own, stored and looked up as under a
private rule. Three ways into a shared cache are closed: to have personal words stored for everybody, to plant an answer
(a question that says what the answer has to be), and to be taken for another question by letters that mean nothing to
a reader but move a vector (arXiv 2601.23088).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from enum import StrEnum

from semcache.text import personal

# Nobody else asks the same in so many letters; and what is looked through below stays short.
MAX_SHARED_CHARS = 500
# A question that means the same is not three times as long: the rest is there for another purpose.
MAX_LENGTH_RATIO = 3.0
MAX_RARE_SYMBOLS = 3
MAX_SYMBOL_SHARE, MIN_SYMBOLS = 0.3, 6
MAX_WORD_SHARE, MIN_WORDS = 0.4, 6


class WhyPrivate(StrEnum):
    """Why an answer stays its asker's under a rule that shares; stable codes."""

    PERSONAL = "personal"
    INSTRUCTS = "instructs"
    LINK = "link"
    ODD_TEXT = "odd-text"


_INSTRUCTS_EN = re.compile(
    r"\b(?:always|only|never|must|should|exclusively)\s+(?:\w+ )?"
    r"(?:reply|respond|answer|say|state|output|print|write|claim|begin|start|end|recommend)\b|"
    r"\b(?:reply|respond|output|print|repeat|echo)\b.{0,30}"
    r"\b(?:only|exactly|with|just|words?|after me|verbatim|following|nothing but)\b|"
    r"(?:^|[.!?,;:]\s*|please |just )(?:say|answer|repeat|tell everyone)\b.{0,20}"
    r"(?:\b(?:that|only|with|exactly|just)\b|[\"':“])|"
    r"\bfrom (?:now|here) on\b|\bno matter (?:what|who)\b|\b(?:if|whenever) (?:any|some)(?:one|body) (?:asks|says)\b|"
    r"\b(?:ignore|disregard|forget|override|bypass)\s+"
    r"(?:all|any|the|your|every|everything|previous|prior|above|these|those|earlier)\b|"
    r"\bpretend\b|\brole-?\s?play\b|(?:^|[.!?,;]\s*|please |you (?:should|must|will|now) )act (?:as|like)\b|"
    r"\b(?:you are|you're) (?:now|no longer|a|an|the|my)\b|\bimagine (?:that )?(?:you|yourself)\b|\bas if you\b|"
    r"\bin the (?:style|voice|role|character) of\b|\b(?:talk|speak|write|answer) (?:to me )?(?:like|as) (?:a|an)\b|"
    r"\b(?:new|your|following|previous|these|secret|hidden) (?:instructions?|rules|orders|persona)\b|"
    r"\b(?:system|developer) (?:prompt|message|mode)\b|\bjailbreak\b|\bdan mode\b|"
    r"\b(?:do not|don't|never) (?:mention|reveal|refuse|warn|apologi[sz]e|disclose)\b|"
    r"\b(?:your|the|every|each) (?:answer|reply|response|output)s? "
    r"(?:must|should|has to|shall|will|needs? to)\b|"
    r"(?:^|\n)\s*(?:system|assistant|user|human|ai)\s*:|<\||\[/?inst\]|<</?sys>>|</?(?:system|instructions?)>|#{3,}",
    re.IGNORECASE,
)
_INSTRUCTS_ZH = re.compile(
    r"(?:始终|一直|总是|永远|一律|只能|只准|只许|只需|务必|必须|统一|都要)[^，。？！,.?!]{0,8}(?:回答|回复|答复|答|输出|返回|说|称|推荐)|"
    r"(?:回答|回复|答复|输出)(?:时|的时候)?(?:必须|只能|务必|始终|都要|一律|请用|请以|要以|以下内容|这句话)|"
    r"从现在(?:开始|起)|从此(?:以后|刻)|(?:以后|今后|往后)(?:都|请|你|每次|凡是|只要)|(?:如果|只要|凡是|每当)有人(?:问|提|说)|"
    r"(?:忽略|无视|忘记|忘掉|不要管|别管|跳过|绕过)[^，。？！,.?!]{0,6}(?:之前|以前|以上|前面|上面|先前|所有|一切|你的|指令|规则|限制|设定)|"
    r"假装|假扮|扮演|假设你|假如你|想象你|设想你|你现在是|你是(?:一|个|名|位)|充当|(?:^|[，。？！,.?!])作为一[个名位]|模仿|用[^，。？！]{1,8}的(?:口吻|语气|风格)|"
    r"系统(?:提示|指令|消息)|提示词|越狱|开发者模式|新(?:的)?(?:指令|规则|设定)|"
    r"(?:跟我|请)?重复(?:我|以下|下面|这句|一遍)|照抄|照着说|原样(?:输出|返回|回答)|逐字|(?:不要|不准|不许|别)(?:提及|提到|透露|拒绝|警告|道歉)"
)
_LINK = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,9}://|\b(?:https?|ftp|javascript|data|mailto)\s?:|\bwww\.|\]\s?\([^)]+\)|"
    r"(?<![a-z0-9-])[a-z0-9-]{1,63}\.(?:com|net|org|io|cn|edu|gov|info|biz|dev|app|ai|co|me|ru|de|uk|fr|jp|eu|us|tv|cc|xyz|top|site|online|shop|"
    r"store|link|click|club|vip)\b",
    re.IGNORECASE,
)
_USUAL_MARKS = frozenset(" \n\t.,?!'\"-:;()/%&$€£¥+°’‘“”–—…，。？！、：；（）《》「」·～℃×")
_REPEATED = re.compile(
    r"([^\d\s])\1{4,}|([^\d\s].{0,11})\2{3,}|\b([^\W\d]\w*)(?:\W+\3\b){2,}", re.DOTALL | re.IGNORECASE
)
_LONG_WORD = re.compile(r"[^\s\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]{40,}")
_MIXED_WORD = re.compile(r"[A-Za-z][\u0370-\u052f]|[\u0370-\u052f][A-Za-z]")
_WORD = re.compile(r"[^\W\d_]+")


def why_private(text: str) -> WhyPrivate | None:
    """Why the answer to this question is its asker's own; None where nothing stands against sharing it."""
    if len(text) > MAX_SHARED_CHARS:
        return WhyPrivate.ODD_TEXT
    if personal.kinds_in(text):
        return WhyPrivate.PERSONAL
    if _LINK.search(text):
        return WhyPrivate.LINK
    if _INSTRUCTS_EN.search(text) or _INSTRUCTS_ZH.search(text):
        return WhyPrivate.INSTRUCTS
    return WhyPrivate.ODD_TEXT if _is_odd(text) else None


def is_length_alike(stored: str, asked: str) -> bool:
    """Whether neither question is so much longer that the rest of it must be there for something else."""
    shorter, longer = sorted((len(stored), len(asked)))
    return longer <= MAX_LENGTH_RATIO * shorter


def _is_odd(text: str) -> bool:
    """Marks, letters or words as nobody writes them who wants an answer."""
    symbols = [char for char in text if not char.isalnum() and not char.isspace()]
    rare = [char for char in symbols if char not in _USUAL_MARKS]
    num_shown = sum(not char.isspace() for char in text)
    return (
        any(unicodedata.category(char)[0] == "C" and char not in "\n\t" for char in text)
        or len(rare) >= MAX_RARE_SYMBOLS
        or (len(symbols) >= MIN_SYMBOLS and len(symbols) > MAX_SYMBOL_SHARE * num_shown)
        or any(sign.search(text) for sign in (_REPEATED, _LONG_WORD, _MIXED_WORD))
        or _repeats_a_word(text)
    )


def _repeats_a_word(text: str) -> bool:
    words = _WORD.findall(text.lower())
    return len(words) >= MIN_WORDS and Counter(words).most_common(1)[0][1] > MAX_WORD_SHARE * len(words)
