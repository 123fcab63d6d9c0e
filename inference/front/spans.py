"""Which part of a rendered prompt came from where.

Knows strings: a frame (the template rendered over unique names) and the true rendering. Knows no tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# What templates of reasoning models look for in an answer: they cut, move or trim what stands between the two.
THINK_TAG = re.compile(r"</?think>")
# Of a piece; looked for as such, because there may be thousands.
_NAME = re.compile("\ue000[^\ue001]*\ue001")
# Whose texts are no message's: those of the functions that are offered.
TOOLS = -1
# Where a text begins that is no part of its message's text: of a call, or one that the template wrote in another way.
NOWHERE = -1
_TAGS_AHEAD = re.compile(r"(?:\s*</?think>)+\s*")
_TAGS_BEHIND = re.compile(r"(?:\s*</?think>)+\s*\Z")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the rendered text; `segment` is None for what the template wrote itself, or TOOLS.

    `start` is where the part begins in the segment's own text, or NOWHERE. `ids` spell the part, where they are known.
    """

    text: str
    segment: int | None = None
    start: int = 0
    ids: tuple[int, ...] = ()

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a segment's text, or any other text but the template's, that stands in a frame under a name.

    Names begin with U+E000 and end with U+E001.
    """

    name: str
    text: str
    segment: int
    start: int = 0


def pieces_around_tags(text: str, segment: int, name: str) -> tuple[str, list[Piece]]:
    """(what stands in the frame, its pieces): the tags stay as they are, so that the template finds them.

    Blanks stay too: a template may ask whether there was any thinking.
    """
    shown, pieces, position = "", [], 0
    for tag in [*THINK_TAG.finditer(text), None]:
        part = text[position : tag.start() if tag else len(text)]
        if part.strip():
            pieces.append(Piece(f"{name}.{position}\ue001", part, segment, position))
            part = pieces[-1].name
        shown += part + (tag.group() if tag else "")
        position = tag.end() if tag else position
    return shown, pieces


def find_spans(frame: str, pieces: Sequence[Piece], rendered: str) -> list[Span] | None:
    """`rendered` cut into the frame's own text and the texts behind the names; None when they do not fit.

    A template may trim a text, of blanks or of line ends only, on one side or both, or write it as JSON: the first
    that fits is taken.
    """
    spans: list[Span] = []
    position = 0
    parts = _split(frame, pieces)
    for number, (glue, piece) in enumerate(parts):
        if not rendered.startswith(glue, position):
            return None
        spans += [Span(glue)] if glue else []
        position += len(glue)
        if piece is None:
            break
        span = _fitting(piece, rendered, position, next_glue=parts[number + 1][0])
        if span is None:
            return None
        spans += [span] if span.text else []
        position += len(span.text)
    return spans if position == len(rendered) else None


def joined(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """The spans, with tags that a segment has at that very place counted as the segment's own text.

    An answer that the template left as it is becomes one span again. Only tags and blanks change hands: the
    template's control tokens stay its own.
    """
    result: list[Span] = []
    for span in spans:
        last = result.pop() if result else Span("")
        result += [part for part in _with_own_tags(last, span, texts) if part.text]
    return result


def common_beginning(first: str, second: str) -> str:
    pairs = zip(first, second, strict=False)
    num = next((num for num, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))
    return first[:num]


def marked(text: str, pattern: re.Pattern[str], mark: str) -> str:
    """`text` with every match of `pattern` broken by `mark` behind its first character."""
    while pattern.search(text):
        text = pattern.sub(lambda match: match.group()[0] + mark + match.group()[1:], text)
    return text


def marker_spans(rendered: str, pattern: re.Pattern[str], mark: str) -> list[Span]:
    """Spans of a rendering over marked texts: what matches `pattern` is the template's, the rest is only text.

    Plain text is given to segment 0: all that counts is that it does not become control tokens.
    """
    spans: list[Span] = []
    position = 0
    for match in pattern.finditer(rendered):
        spans.append(Span(rendered[position : match.start()].replace(mark, ""), 0))
        spans.append(Span(match.group()))
        position = match.end()
    spans.append(Span(rendered[position:].replace(mark, ""), 0))
    return [span for span in spans if span.text]


def _split(frame: str, pieces: Sequence[Piece]) -> list[tuple[str, Piece | None]]:
    """(text, piece behind it) pairs; the last has no piece."""
    by_name = {piece.name: piece for piece in pieces}
    named: list[tuple[str, Piece | None]] = []
    position = 0
    for match in _NAME.finditer(frame):
        if match.group() in by_name:
            named.append((frame[position : match.start()], by_name[match.group()]))
            position = match.end()
    return [*named, (frame[position:], None)]


def _fitting(piece: Piece, rendered: str, position: int, next_glue: str) -> Span | None:
    for candidate, start in _candidates(piece.text):
        if rendered.startswith(candidate, position) and rendered.startswith(
            next_glue, position + len(candidate)
        ):
            is_somewhere = NOWHERE not in (start, piece.start)
            return Span(candidate, piece.segment, piece.start + start if is_somewhere else NOWHERE)
    return None


def _candidates(text: str) -> Iterator[tuple[str, int]]:
    """The forms that a template may give a text, and where each begins in it."""
    yield text, 0
    for blanks in (None, "\n"):
        for side in (text.strip, text.lstrip, text.rstrip):
            trimmed = side(blanks)
            yield trimmed, text.index(trimmed)
    for form in (text, text.strip()):
        once = in_json(form)
        yield once, NOWHERE
        yield in_json(once), NOWHERE  # the JSON of an object that is written as a text of JSON


def in_json(text: str) -> str:
    """As it stands between quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _with_own_tags(left: Span, right: Span, texts: Sequence[str]) -> tuple[Span, Span]:
    """Two neighbours, with tags moved to the one whose segment has them; one span where they then belong together."""
    if NOWHERE in (left.start, right.start):
        return left, right
    if left.segment is None and right.segment is not None:
        num = _num_tags_behind(left.text, texts[right.segment][: right.start])
        kept, moved = left.text[: len(left.text) - num], left.text[len(left.text) - num :]
        left, right = Span(kept), Span(moved + right.text, right.segment, right.start - num)
    elif left.segment is not None and right.segment is None:
        num = _num_tags_ahead(right.text, texts[left.segment][left.end :])
        left = Span(left.text + right.text[:num], left.segment, left.start)
        right = Span(right.text[num:])
    if left.segment == right.segment is not None and left.end == right.start:
        return Span(left.text + right.text, left.segment, left.start), Span("")
    return left, right


def _num_tags_ahead(glue: str, text: str) -> int:
    """Characters at the beginning of both that are tags and the blanks around them."""
    found = _TAGS_AHEAD.match(common_beginning(glue, text))
    return found.end() if found else 0


def _num_tags_behind(glue: str, text: str) -> int:
    common = common_beginning(glue[::-1], text[::-1])[::-1]
    found = _TAGS_BEHIND.search(common)
    return len(common) - found.start() if found else 0
