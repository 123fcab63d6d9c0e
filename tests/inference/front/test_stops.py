from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inference.front.stops import StopFilter

TEXT = st.text(alphabet="ab你", max_size=30)
STOPS = st.lists(st.text(alphabet="ab你", min_size=1, max_size=4), min_size=1, max_size=3)


def first_complete(text: str, stops: list[str]) -> str | None:
    """The oracle: the text before the stop string that is complete first, found by growing the text."""
    for end in range(len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            return text[: min(starts)]
    return None


def split(text: str, cuts: list[int]) -> list[str]:
    borders = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(borders)]


@given(TEXT, STOPS, st.lists(st.integers(0, 100), max_size=10))
def test_the_result_is_the_same_for_every_split(text: str, stops: list[str], cuts: list[int]) -> None:
    stop_filter, out, is_stopped = StopFilter(stops), "", False
    for part in split(text, cuts):
        released, is_stopped = stop_filter.push(part)
        out += released
        if is_stopped:
            break
    expected = first_complete(text, stops)
    assert is_stopped == (expected is not None)
    assert (out if is_stopped else out + stop_filter.flush()) == (text if expected is None else expected)


@given(TEXT, STOPS)
def test_only_what_may_become_a_stop_string_is_held(text: str, stops: list[str]) -> None:
    stop_filter = StopFilter(stops)
    released, is_stopped = stop_filter.push(text)
    if not is_stopped:
        held = text[len(released) :]
        assert held == "" or any(stop.startswith(held) for stop in stops)
        assert not any(
            text[start:] and stop.startswith(text[start:]) for stop in stops for start in range(len(released))
        )


def test_without_stop_strings_nothing_is_held() -> None:
    assert StopFilter(()).push("abc") == ("abc", False)
