"""Which part of a rendered prompt came from where.

Knows strings: a frame (the template rendered over unique names) and the true rendering. Knows no tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the rendered text; `segment` is None for what the template wrote itself."""

    text: str
    segment: int | None = None


def find_spans(frame: str, names: Sequence[str], texts: Sequence[str], rendered: str) -> list[Span] | None:
    """`rendered` cut into the frame's own text and the texts behind `names`; None when they do not fit.

    A template may trim a text: the first of "as it is, trimmed, trimmed on one side" that fits is taken.
    """
    spans: list[Span] = []
    position = 0
    parts = _split(frame, names)
    for number, (glue, segment) in enumerate(parts):
        if not rendered.startswith(glue, position):
            return None
        spans += [Span(glue)] if glue else []
        position += len(glue)
        if segment is None:
            break
        next_glue = parts[number + 1][0]
        text = _fitting(texts[segment], rendered, position, next_glue)
        if text is None:
            return None
        spans += [Span(text, segment)] if text else []
        position += len(text)
    return spans if position == len(rendered) else None


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


def _split(frame: str, names: Sequence[str]) -> list[tuple[str, int | None]]:
    """(text, number of the name behind it) pairs; the last has no name."""
    numbers = {name: number for number, name in enumerate(names) if name}
    if not numbers:
        return [(frame, None)]
    pieces = re.split("(" + "|".join(map(re.escape, numbers)) + ")", frame)
    parts: list[tuple[str, int | None]] = [
        (glue, numbers[name]) for glue, name in zip(pieces[0:-1:2], pieces[1::2], strict=True)
    ]
    return [*parts, (pieces[-1], None)]


def _fitting(text: str, rendered: str, position: int, next_glue: str) -> str | None:
    for candidate in (text, text.strip(), text.lstrip(), text.rstrip()):
        if rendered.startswith(candidate, position) and rendered.startswith(
            next_glue, position + len(candidate)
        ):
            return candidate
    return None
