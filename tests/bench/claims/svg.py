"""Small charts as SVG text: lines and bars on a white card, so that they read the same on light and dark pages.

Knows coordinates and colours; no numbers of its own, no files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from tests.bench.claims.findings import Bars, Lines

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 64, 44
INK, FAINT, GRID = "#1f2328", "#59636e", "#d1d9e0"
COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df")
LEGEND_LEFT, LEGEND_STEP = 120, 180
NUM_TICKS = 4
Point = tuple[float, float]


def draw(picture: Lines | Bars) -> str:
    body = _lines(picture) if isinstance(picture, Lines) else _bars(picture)
    card = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff" stroke="{GRID}"/>'
    title = _text(16, 26, picture.title, size=15, weight=600)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(picture.title)}" font-family="system-ui, sans-serif">'
    )
    return "\n".join([head, card, title, *body, "</svg>", ""])


def _lines(picture: Lines) -> Iterable[str]:
    points = [point for _, series in picture.series for point in series]
    top = _round_up(max(y for _, y in points))
    xs = sorted({_x(picture, x) for x, _ in points})
    yield from _grid(picture.y, top)
    yield _text(WIDTH - RIGHT, HEIGHT - 8, picture.x, colour=FAINT, anchor="end")
    for x in _ticks(sorted({x for x, _ in points})):
        place = _across(_x(picture, x), xs[0], xs[-1])
        yield _text(place, HEIGHT - BOTTOM + 18, _number(x), colour=FAINT, anchor="middle")
    for number, (name, series) in enumerate(picture.series):
        colour = COLOURS[number]
        path = " ".join(
            f"{_across(_x(picture, x), xs[0], xs[-1]):.1f},{_down(y, top):.1f}" for x, y in series
        )
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        if len(picture.series) > 1:
            yield _text(LEGEND_LEFT + LEGEND_STEP * number, 48, name, colour=colour, weight=600)


def _bars(picture: Bars) -> Iterable[str]:
    top = _round_up(max(value for _, value in picture.bars))
    yield from _grid(picture.y, top)
    slot = (WIDTH - LEFT - RIGHT) / len(picture.bars)
    width = min(90.0, 0.6 * slot)
    for number, (label, value) in enumerate(picture.bars):
        middle, height = LEFT + slot * (number + 0.5), _down(0, top) - _down(value, top)
        yield (
            f'<rect x="{middle - width / 2:.1f}" y="{_down(value, top):.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" fill="{COLOURS[0]}"/>'
        )
        yield _text(middle, _down(value, top) - 6, _number(value), anchor="middle", weight=600)
        yield _text(middle, HEIGHT - BOTTOM + 18, label, colour=FAINT, anchor="middle", size=12)


def _grid(unit: str, top: float) -> Iterable[str]:
    for number in range(NUM_TICKS + 1):
        value = top * number / NUM_TICKS
        y = _down(value, top)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>'
        yield _text(LEFT - 8, y + 4, _number(value), colour=FAINT, anchor="end")
    yield _text(16, 48, unit, colour=FAINT)


def _text(
    x: float,
    y: float,
    text: str,
    *,
    colour: str = INK,
    anchor: str = "start",
    size: int = 13,
    weight: int = 400,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def _x(picture: Lines, value: float) -> float:
    return math.log2(value) if picture.is_log_x else value


def _across(value: float, low: float, high: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * ((value - low) / (high - low) if high > low else 0.5)


def _down(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def _round_up(value: float) -> float:
    """The next of 1, 2, 4, 5, 8, 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 4, 5, 8, 10) if factor * power >= value)


def _ticks(values: Sequence[float]) -> Sequence[float]:
    """At most eight of the values, the first and the last among them."""
    if len(values) <= 8:
        return values
    return [values[round(number * (len(values) - 1) / 6)] for number in range(7)]


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
