"""Times as tokens of three letters, so that whoever reads an answer knows when each of its tokens was made.

Steps of 0.1 ms, which come round again every 26 s: only for times that are nearer than that. Both sides read the same
monotonic clock, so they must be on one machine.
"""

from __future__ import annotations

ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
STAMP_CHARS = 3
TICK_S = 1e-4
_BASE = len(ALPHABET)
NUM_TICKS = _BASE**STAMP_CHARS
_VALUES = {chr(letter): value for value, letter in enumerate(ALPHABET)}


def stamp_of(monotonic_s: float) -> bytes:
    ticks = int(monotonic_s / TICK_S) % NUM_TICKS
    return bytes(ALPHABET[ticks // _BASE**place % _BASE] for place in reversed(range(STAMP_CHARS)))


def times_of(text: str, near_s: float) -> list[float]:
    """The monotonic times that `text` is made of: each the last one before `near_s` with that stamp.

    Raises KeyError for a text that holds anything else.
    """
    now = near_s / TICK_S
    times = []
    for start in range(0, len(text), STAMP_CHARS):
        ticks = 0
        for letter in text[start : start + STAMP_CHARS]:
            ticks = ticks * _BASE + _VALUES[letter]
        age = (int(now) - ticks) % NUM_TICKS
        times.append((int(now) - age) * TICK_S)
    return times
