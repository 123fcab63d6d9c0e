"""What text may enter the database: PostgreSQL takes neither NUL nor half of a surrogate pair.

People's text is refused with a clear error, never changed; the model's is cleaned, because nobody could correct it.
"""

from __future__ import annotations

import re

from chatsite.errors import InvalidRequest, InvalidText, MessageTooLong

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def checked(text: str, name: str = "text", max_chars: int | None = None) -> str:
    """`text` itself. Raises InvalidText or MessageTooLong; `name` tells the user which field is meant."""
    if max_chars is not None and len(text) > max_chars:
        raise MessageTooLong(f"{name} has {len(text)} characters; at most {max_chars} are allowed.")
    if _UNSTORABLE.search(text):
        raise InvalidText(f"{name} holds a NUL character or half of a surrogate pair.")
    return text


def checked_question(text: str, max_chars: int) -> str:
    if not text.strip():
        raise InvalidRequest("text is empty.")
    return checked(text, "text", max_chars)


def cleaned(text: str) -> str:
    """Text of a model: NUL goes, half a surrogate pair becomes U+FFFD."""
    if not _UNSTORABLE.search(text):
        return text
    return _UNSTORABLE.sub(lambda found: "" if found[0] == "\x00" else "\ufffd", text)
