"""Which ids of an answer, as it was generated, spell which part of its text.

Knows one message's ids and text. Does not know templates, prompts or other messages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from inference.front.tokenizer import Tokenizer
from inference.types import Segment

# A character has at most four bytes, each of which may be a token: a border between characters is not far.
MAX_CHARACTER_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Run:
    """`ids` spell the message's text from `start` to `end`."""

    ids: tuple[int, ...]
    start: int
    end: int


def run_for(tokenizer: Tokenizer, segment: Segment, start: int, end: int) -> Run | None:
    """The longest run of the segment's ids inside [start, end) of its text; None when there is none to use."""
    ids = segment.token_ids
    if not ids or segment.tokenizer != tokenizer.fingerprint:
        return None
    if any(token in tokenizer.special_ids or not tokenizer.knows(token) for token in ids):
        return None
    if start == 0 and tokenizer.decode(ids) == segment.text[:end]:
        return Run(ids, 0, end)
    first = _border(tokenizer, segment, start, is_start=True)
    last = _border(tokenizer, segment, end, is_start=False)
    if first is None or last is None or first[0] >= last[0]:
        return None
    return Run(ids[first[0] : last[0]], first[1], last[1])


def _border(tokenizer: Tokenizer, segment: Segment, offset: int, *, is_start: bool) -> tuple[int, int] | None:
    """(number of ids, end of their text) of the border between tokens next to `offset`, on the inner side."""
    ids = segment.token_ids
    for num in _numbers_near(tokenizer, ids, offset, is_start=is_start):
        spelled = tokenizer.decode(ids[:num])
        is_inside = len(spelled) >= offset if is_start else len(spelled) <= offset
        if is_inside and segment.text.startswith(spelled):
            return num, len(spelled)
    return None


def _numbers_near(
    tokenizer: Tokenizer, ids: tuple[int, ...], offset: int, *, is_start: bool
) -> Iterator[int]:
    """Numbers of leading ids whose text may end at `offset`, nearest first. Half characters blur the search."""
    nearest = bisect_right(range(len(ids)), offset, key=lambda num: len(tokenizer.decode(ids[:num])))
    reach = 2 * MAX_CHARACTER_TOKENS
    if is_start:
        yield from range(max(0, nearest - reach), min(len(ids), nearest + reach) + 1)
    else:
        yield from range(min(len(ids), nearest + reach), max(0, nearest - reach) - 1, -1)
