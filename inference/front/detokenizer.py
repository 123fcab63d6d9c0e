"""Tokens in, whole characters out.

Knows that the text of a token may depend on the tokens before it and that a character may span several tokens.
Does not know stop strings, events or ids' meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

BROKEN = "\ufffd"
# A character has at most four bytes: a longer row of tokens without whole text is garbage and may leave.
MAX_CHARACTER_TOKENS = 4
MAX_PENDING = 4 * MAX_CHARACTER_TOKENS


class Decoder(Protocol):
    def decode(self, ids: Sequence[int]) -> str: ...


class Detokenizer:
    """For every split of the ids the joined results equal decode(all ids); what has left never changes.

    `before` are ids behind which these come, and whose text is somebody else's.
    """

    def __init__(self, decoder: Decoder, before: Sequence[int] = ()) -> None:
        self._decoder = decoder
        # Ids whose text has left; they decide about blanks at the border.
        self._context: list[int] = list(before[-MAX_PENDING:])
        self._pending: list[int] = []

    @property
    def num_pending(self) -> int:
        return len(self._pending)

    def push(self, token: int) -> str:
        """Whole characters that are certain now; empty while a character is incomplete."""
        self._pending.append(token)
        text = self._pending_text()
        if text.endswith(BROKEN):
            return self._release_garbage()
        if text:
            self._context, self._pending = self._pending, []
        elif len(self._pending) > MAX_PENDING:  # ids without any text, as some vocabularies are padded with
            self._pending.clear()
        return text

    def flush(self) -> str:
        """The rest as decode() shows it, U+FFFD for a character that stayed incomplete."""
        text = self._pending_text() if self._pending else ""
        self._context, self._pending = self._pending, []
        return text

    def _pending_text(self) -> str:
        before = self._decoder.decode(self._context)
        return self._decoder.decode(self._context + self._pending)[len(before) :]

    def _release_garbage(self) -> str:
        """All but the last few tokens of a long broken row, where the border changes nothing."""
        if len(self._pending) <= MAX_PENDING:
            return ""
        head, tail = self._pending[:-MAX_CHARACTER_TOKENS], self._pending[-MAX_CHARACTER_TOKENS:]
        before = self._decoder.decode(self._context)
        head_text = self._decoder.decode(self._context + head)[len(before) :]
        if self._decoder.decode(head) + self._decoder.decode(tail) != self._decoder.decode(head + tail):
            return ""
        self._context, self._pending = head, tail
        return head_text
