"""What the operator reads."""

from __future__ import annotations

import io
import os

import pytest

from chatsite.launcher.console import Console


def test_lines_carry_the_name_of_their_process() -> None:
    stream = io.StringIO()
    Console(stream).child_line("web", "hello")
    assert stream.getvalue() == "web      | hello\n"


def test_steps_carry_the_seconds_since_the_beginning() -> None:
    stream = io.StringIO()
    times = iter([10.0, 13.5])
    Console(stream, clock=lambda: next(times)).step("warming up")
    assert stream.getvalue() == "[   3.5 s] warming up\n"


def test_colours_tell_processes_apart() -> None:
    stream = io.StringIO()
    console = Console(stream, is_coloured=True)
    console.child_line("web", "a")
    console.child_line("beat", "b")
    first, second = stream.getvalue().splitlines()
    assert first.startswith("\x1b[")
    assert first[:5] != second[:5]


def test_a_reader_that_went_away_does_not_stop_the_site() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError), os.fdopen(writing, "w") as stream:
        console = Console(stream)
        console.step("nobody reads this")
        console.step("nor this")
        # Only closing the stream, which flushes what is left, may still complain.
