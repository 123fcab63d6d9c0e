"""Text of an upstream that gives no token ids, spelled with the ids of our own tokenizer.

Knows that the ids need not be those that the upstream made: only their text is the same.
"""

from __future__ import annotations

from inference.front.tokenizer import Tokenizer
from inference.gateway.errors import Broken


class Speller:
    """For one answer: decode(all ids so far) == all text so far, whatever the cuts between the parts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._context: list[int] = []  # ids of the part before: they decide about blanks at the border

    def ids_of(self, text: str) -> list[int]:
        """Raises Broken for a text that the tokenizer cannot spell."""
        if not text:
            return []
        ids = self._tokenizer.encode_plain(text)
        if not self._spells(
            ids, text
        ):  # what stands alone is often told apart better than what stands together
            ids = [token for character in text for token in self._tokenizer.encode_plain(character)]
            if not self._spells(ids, text):
                raise Broken(
                    "the upstream wrote text that the tokenizer of MODEL cannot spell: is it the same model?"
                )
        self._context = ids
        return ids

    def _spells(self, ids: list[int], text: str) -> bool:
        before = self._tokenizer.decode(self._context)
        return self._tokenizer.decode(self._context + ids) == before + text
