"""In which words two texts differ, for a reader: what only the first has and what only the second has.

Pure. A word is a run of letters or digits; a Chinese or Japanese character counts as one, for such texts have no
spaces. Differences in white space alone are none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

# Beyond that nobody reads marks. From 200 words on the commonest of them begin no match (`SequenceMatcher`): before,
# 2,000 words that are all the same took a minute; 10,000 take a fifth of a second, whatever their order.
MAX_WORDS = 10_000
# A shorter run of equal words between two differences is a coincidence, and reads better as a part of them.
MIN_EQUAL_WORDS = 2

_WORD = re.compile(
    r"(?:[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|\S|^)\s*"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `is_other` where the other text says something else or nothing."""

    text: str
    is_other: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """Both texts, whole, in pieces."""

    one: tuple[Piece, ...]
    other: tuple[Piece, ...]

    @property
    def is_none(self) -> bool:
        return not any(piece.is_other for piece in (*self.one, *self.other))


def difference(one: str, other: str) -> Difference | None:
    """None where they are too long to be compared word by word."""
    left, right = _WORD.findall(one), _WORD.findall(other)
    if max(len(left), len(right)) > MAX_WORDS:
        return None
    runs = _equal_runs([word.strip() for word in left], [word.strip() for word in right])
    return Difference(
        _pieces(left, [(start, start + size) for start, _, size in runs]),
        _pieces(right, [(start, start + size) for _, start, size in runs]),
    )


def _equal_runs(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int, int]]:
    """(start in the left, start in the right, number of words) of what both have, in order."""
    runs = SequenceMatcher(None, left, right).get_matching_blocks()
    ends = (len(left), len(right))
    return [
        (one, other, size)
        for one, other, size in runs
        if size >= MIN_EQUAL_WORDS
        or (size and ((one, other) == (0, 0) or (one + size, other + size) == ends))
    ]


def _pieces(words: Sequence[str], equal: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    pieces, done = [], 0
    for start, end in equal:
        pieces += [Piece("".join(words[done:start]), True), Piece("".join(words[start:end]), False)]
        done = end
    pieces.append(Piece("".join(words[done:]), True))
    return tuple(part for piece in pieces for part in _without_end(piece) if part.text)


def _without_end(piece: Piece) -> tuple[Piece, Piece]:
    """The white space behind a difference is none."""
    text = piece.text.rstrip() if piece.is_other else piece.text
    return Piece(text, piece.is_other), Piece(piece.text[len(text) :], False)
