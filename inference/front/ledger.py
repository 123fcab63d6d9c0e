"""Which ids of an answer, as it was generated, spell which part of its text.

Knows one message's ids and text, and of calls which spans are its own. Does not know templates or prompts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inference.front.spans import NOWHERE, Span
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
    if not _is_usable(tokenizer, segment):
        return None
    if start == 0 and tokenizer.decode(ids) == segment.text[:end]:
        return Run(ids, 0, end)
    first = _border(tokenizer, segment, start, is_start=True)
    last = _border(tokenizer, segment, end, is_start=False)
    if first is None or last is None or first[0] >= last[0]:
        return None
    return Run(ids[first[0] : last[0]], first[1], last[1])


def with_ledgers_of_calls(
    tokenizer: Tokenizer, spans: Sequence[Span], segments: Sequence[Segment]
) -> list[Span]:
    """The spans; where the ids of a message that made calls spell all that stands for it, they are one with its ids."""
    placed = list(spans)
    for index, segment in enumerate(segments):
        if segment.tool_calls and _is_usable(tokenizer, segment):
            placed = _with_ids_of(index, segment.token_ids, tokenizer.decode(segment.token_ids), placed)
    return placed


def num_unplaced(spans: Sequence[Span], segments: Sequence[Segment]) -> int:
    """Messages that made calls, and whose ids stand nowhere."""
    placed = {span.segment for span in spans if span.ids}
    return sum(
        bool(segment.tool_calls and segment.token_ids) and index not in placed
        for index, segment in enumerate(segments)
    )


def _with_ids_of(index: int, ids: tuple[int, ...], spelled: str, spans: list[Span]) -> list[Span]:
    """The ids spell the message's own spans and what the template wrote between them, and perhaps around them."""
    own = [place for place, span in enumerate(spans) if span.segment == index]
    if not own:
        return spans
    first, end = own[0], own[-1] + 1
    while first and spans[first - 1].segment is None:
        first -= 1
    while end < len(spans) and spans[end].segment is None:
        end += 1
    text = "".join(span.text for span in spans[first:end])
    start_of_own = sum(len(span.text) for span in spans[first : own[0]])
    end_of_own = start_of_own + sum(len(span.text) for span in spans[own[0] : own[-1] + 1])
    place = text.find(spelled, max(0, end_of_own - len(spelled)))
    if not 0 <= place <= start_of_own:
        return spans
    parts = [Span(text[:place]), Span(spelled, index, NOWHERE, ids), Span(text[place + len(spelled) :])]
    return [*spans[:first], *(part for part in parts if part.text), *spans[end:]]


def _is_usable(tokenizer: Tokenizer, segment: Segment) -> bool:
    ids = segment.token_ids
    return bool(ids and segment.tokenizer == tokenizer.fingerprint) and not any(
        token in tokenizer.special_ids or not tokenizer.knows(token) for token in ids
    )


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
