"""Stop strings over a stream of text, whatever the cuts between its parts.

Knows strings only. Holds back the longest end of the text that may still become a stop string, nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence


class StopFilter:
    """Of several matches the one that is complete first wins, so the result does not depend on how text arrives."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """Text that may leave now, and whether a stop string was found (the rest is then cut)."""
        if not self._stops:
            return text, False
        text = self._held + text
        start = self._first_match(text)
        if start is not None:
            self._held = ""
            return text[:start], True
        num_held = max(_overlap(text, stop) for stop in self._stops)
        cut = len(text) - num_held
        self._held = text[cut:]
        return text[:cut], False

    def flush(self) -> str:
        """The held text: the stream has ended and it did not become a stop string."""
        text, self._held = self._held, ""
        return text

    def _first_match(self, text: str) -> int | None:
        found = [(start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0]
        return min(found)[1] if found else None


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a beginning of `stop`."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
