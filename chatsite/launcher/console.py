"""Writes what the operator reads: prefixed log lines of the children and the launcher's own progress.

Knows nothing of processes. A reader that went away (a closed pipe) must never stop the site.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

RESET = "\x1b[0m"
DIM = "\x1b[2m"
RED = "\x1b[31m"
GREEN = "\x1b[32m"
NAME_COLOURS = (
    "\x1b[36m",
    "\x1b[35m",
    "\x1b[34m",
    "\x1b[33m",
    "\x1b[96m",
    "\x1b[95m",
    "\x1b[94m",
    "\x1b[93m",
)
NAME_WIDTH = 8


class Console:
    """Lines in order of arrival, each with the name of the process that wrote it."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        is_coloured: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stdout if stream is None else stream
        if is_coloured is None:
            is_coloured = self._stream.isatty() and "NO_COLOR" not in os.environ
        self._is_coloured = is_coloured
        self._clock = clock
        self._started_at = clock()
        self._colours: dict[str, str] = {}
        self._has_reader = True

    def child_line(self, name: str, line: str) -> None:
        """One line that the child `name` wrote."""
        colour = self._colours.setdefault(name, NAME_COLOURS[len(self._colours) % len(NAME_COLOURS)])
        self._write(f"{self._painted(colour, name.ljust(NAME_WIDTH))} | {line}")

    def step(self, text: str) -> None:
        """Progress of the launcher itself, with the seconds since it began."""
        elapsed = f"[{self._clock() - self._started_at:6.1f} s]"
        self._write(f"{self._painted(DIM, elapsed)} {text}")

    def ready(self, text: str) -> None:
        self.step(self._painted(GREEN, text))

    def error(self, text: str) -> None:
        self.step(self._painted(RED, text))

    def _painted(self, colour: str, text: str) -> str:
        return f"{colour}{text}{RESET}" if self._is_coloured else text

    def _write(self, line: str) -> None:
        if not self._has_reader:
            return
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except BrokenPipeError:
            self._has_reader = False
