"""Texts that wait for an encoder, by length: a micro-batch pads every text to its longest.

Knows lengths, order and bounds of a batch. Does not know what a text is for. Choosing looks at lengths, of which there
are some hundreds, and never at all waiting texts, of which there may be thousands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

# Padding at most doubles a text, but so many tokens are always free to pad: an encoder's fixed costs exceed them.
FREE_PADDING_TOKENS = 16


class Waiting(Protocol):
    """A text in the queue. `number` grows with every arrival."""

    @property
    def number(self) -> int: ...

    @property
    def num_tokens(self) -> int: ...


Text = TypeVar("Text", bound=Waiting)


@dataclass(frozen=True, slots=True)
class BatchBounds:
    """Of one micro-batch; `max_tokens` counts padding. A single text goes whatever its length."""

    max_texts: int
    max_tokens: int


class LengthGroups(Generic[Text]):
    """First in, first out within a length; the oldest of all is in the next micro-batch."""

    def __init__(self) -> None:
        self._groups: dict[int, deque[Text]] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, text: Text) -> None:
        self._groups.setdefault(text.num_tokens, deque()).append(text)

    def take(self, bounds: BatchBounds) -> list[Text]:
        """The oldest text with others of like length."""
        texts: list[Text] = []
        for length, count in self._plan(bounds).items():
            group = self._groups[length]
            texts += [group.popleft() for _ in range(count)]
            if not group:
                del self._groups[length]
        return texts

    def discard(self, is_lost: Callable[[Text], bool]) -> None:
        for length, group in list(self._groups.items()):
            kept = deque(text for text in group if not is_lost(text))
            if kept:
                self._groups[length] = kept
            else:
                del self._groups[length]

    def _plan(self, bounds: BatchBounds) -> dict[int, int]:
        """So many texts of each length."""
        oldest = min((group[0] for group in self._groups.values()), key=lambda text: text.number)
        own = oldest.num_tokens
        longest, num_texts = own, 0
        counts: dict[int, int] = {}
        alike = [length for length in self._groups if _are_alike(length, own)]
        for length in sorted(alike, key=lambda length: (abs(length - own), length)):
            longest_then = max(longest, length)
            room = min(bounds.max_texts, max(bounds.max_tokens // longest_then, 1)) - num_texts
            count = min(len(self._groups[length]), room)
            if count > 0:
                counts[length] = count
                longest, num_texts = longest_then, num_texts + count
            if count < len(self._groups[length]):
                break
        return counts


def _are_alike(one: int, other: int) -> bool:
    return abs(one - other) <= max(min(one, other), FREE_PADDING_TOKENS)
