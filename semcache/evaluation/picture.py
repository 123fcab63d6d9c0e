"""The curves of each set as one SVG, readable on a light and on a dark page. Only draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from semcache.evaluation.figures import SetFigures
from semcache.evaluation.metrics import Point

WIDTH, HEIGHT, MARGIN = 300, 200, 46
COLUMNS = 2
MOST_WRONG = 0.10  # the right end of the axis; a cache that is wrong more often interests nobody
TICKS = 5
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 } .axis { stroke: #8c959f; fill: none } .grid { stroke: #8c959f; stroke-opacity: .25 }
.way { fill: none; stroke-width: 2 } .way0 { stroke: #b35900 } .way1 { stroke: #0969da } .way2 { stroke: #1a7f37 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .way0 { stroke: #f0883e } .way1 { stroke: #58a6ff } .way2 { stroke: #3fb950 }
}"""


def svg(sets: Sequence[SetFigures]) -> str:
    num_rows = -(-len(sets) // COLUMNS)
    width, height = COLUMNS * (WIDTH + 2 * MARGIN), num_rows * (HEIGHT + 2 * MARGIN) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>Share of questions served (upwards) against share of wrong answers (to the right)</title>",
        f"<style>{STYLE}</style>",
        *_legend(sets, height - 16),
    ]
    for place, figures in enumerate(sets):
        row, column = divmod(place, COLUMNS)
        x, y = column * (WIDTH + 2 * MARGIN) + MARGIN, row * (HEIGHT + 2 * MARGIN) + MARGIN
        parts += [f'<g transform="translate({x} {y})">', *_panel(figures), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(figures: SetFigures) -> Iterator[str]:
    yield f'<text class="title" y="-14">{escape(figures.name)}</text>'
    for tick in range(TICKS + 1):
        share = tick / TICKS
        x, y = share * WIDTH, HEIGHT * (1 - share)
        yield f'<path class="grid" d="M0 {y:.1f}H{WIDTH}M{x:.1f} 0V{HEIGHT}"/>'
        yield f'<text x="-6" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>'
        yield f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{share * MOST_WRONG:.0%}</text>'
    yield f'<path class="axis" d="M0 0V{HEIGHT}H{WIDTH}"/>'
    below = f"wrong, of {escape(figures.shares.wrong_of)}"
    yield f'<text x="{WIDTH / 2}" y="{HEIGHT + 32}" text-anchor="middle">{below}</text>'
    for number, points in enumerate(figures.curves.values()):
        yield f'<path class="way way{number}" d="{_path(points)}"/>'


def _path(points: Sequence[Point]) -> str:
    shown = [point for point in points if point.wrong.share <= MOST_WRONG]
    places = [
        f"{point.wrong.share / MOST_WRONG * WIDTH:.1f} {HEIGHT * (1 - point.served.share):.1f}"
        for point in shown
    ]
    return "M" + "L".join(dict.fromkeys(places))


def _legend(sets: Sequence[SetFigures], y: float) -> Iterator[str]:
    num_ways = max((len(figures.curves) for figures in sets), default=0)
    for number in range(num_ways):
        ways = dict.fromkeys(list(figures.curves)[number] for figures in sets if number < len(figures.curves))
        x = MARGIN + number * 170
        yield f'<path class="way way{number}" d="M{x} {y - 4}h24"/>'
        yield f'<text x="{x + 30}" y="{y}">{escape(" / ".join(ways))}</text>'
