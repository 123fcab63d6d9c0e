"""Canonical text: the one cleaning that every text of the cache goes through, and the exact key made from it.

Pure: knows nothing of rules, scopes or storage. Whoever stores, compares, embeds or hashes a text uses these
functions, so that a text is never clean in one place and raw in another.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata

REPLACEMENT = "\ufffd"
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_CODE = re.compile(r"```|\n[ \t]+\S")
_SPACES = re.compile(r"\s+")
_FIRST_WORD = re.compile(r"^[A-Z][a-z']*(?=\s)")
# Folding more than a sentence's first function word would make one of "us" and "US", "polish" and "Polish".
_OPENERS_TEXT = """
a an the is are am was were do does did can could will would shall should may might must have has had what
which who whom whose when where why how please tell show give explain describe list write i i'm my we our you
your there it in on at for to from if and or"""
_OPENERS = frozenset(_OPENERS_TEXT.split())
# Sorting the marks on one letter takes time with the square of their number; no script stacks this many.
MAX_MARKS = 64


def clean(text: str) -> str:
    """`text` as PostgreSQL and UTF-8 can hold it: no NUL, half surrogate pairs replaced, NFC. Keeps white space.

    Letters with absurd stacks of marks are left as they are: they cost no time and only equal themselves.
    """
    text = text.replace("\x00", "")
    # Halves that belong together become the character they stand for; only what is left over is broken.
    text = (
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _has_surrogate(text) else text
    )
    return text if _has_stack_of_marks(text) else unicodedata.normalize("NFC", text)


def canonical(text: str) -> str:
    """The text that is compared, embedded and hashed: clean, white space single, a first "How" equal to "how".

    White space inside code carries meaning, so a text that looks like code keeps all but its line ends.
    """
    text = clean(text)
    if _CODE.search(text):
        return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
    text = _SPACES.sub(" ", text).strip()
    first = _FIRST_WORD.match(text)
    if first and first[0].lower() in _OPENERS:
        return first[0].lower() + text[first.end() :]
    return text


def exact_key(text: str, history: str) -> str:
    """SHA-256 hex of a canonical question and of everything said before it ("" for a first turn)."""
    return sha256_of("exact", history, text)


def sha256_of(*parts: str) -> str:
    """SHA-256 hex of the parts, unambiguous in where one ends and the next begins."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode("ascii")).hexdigest()


def _has_stack_of_marks(text: str) -> bool:
    if text.isascii():
        return False
    num_marks = 0
    for char in text:
        num_marks = num_marks + 1 if unicodedata.combining(char) else 0
        if num_marks > MAX_MARKS:
            return True
    return False


def _has_surrogate(text: str) -> bool:
    return _LONE_SURROGATES.search(text) is not None
