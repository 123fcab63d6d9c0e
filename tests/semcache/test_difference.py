"""What two answers say differently is shown in whole words, and in characters where a language has no spaces."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.text.difference import MAX_WORDS, Difference, difference


def compared(one: str, other: str) -> Difference:
    found = difference(one, other)
    assert found is not None
    return found


def marked(one: str, other: str) -> tuple[list[str], list[str]]:
    found = compared(one, other)
    return (
        [piece.text for piece in found.one if piece.is_other],
        [piece.text for piece in found.other if piece.is_other],
    )


@pytest.mark.parametrize(
    ("one", "other", "gone", "come"),
    [
        ("We open at nine on Mondays.", "We open at ten on Mondays.", ["nine"], ["ten"]),
        ("We open at 9.", "We do not open at 9.", [], ["do not"]),
        ("我们周一九点开门。", "我们周一十点开门。", ["九"], ["十"]),
        ("我们九点开门。", "我们九点不开门。", [], ["不"]),
        ("Same words.", "Same words.", [], []),
        ("Same words.", "Same\n\n words. ", [], []),
        ("", "Something", [], ["Something"]),
        ("Höhe: 3 m", "Höhe: 4 m", ["3"], ["4"]),
    ],
)
def test_only_what_differs_is_marked(one: str, other: str, gone: list[str], come: list[str]) -> None:
    assert marked(one, other) == (gone, come)
    assert compared(one, other).is_none == (not gone and not come)


def test_a_word_is_never_cut() -> None:
    assert marked("The house is small today", "The mouse is small today") == (["house"], ["mouse"])


def test_a_single_equal_word_between_two_differences_is_no_island() -> None:
    gone, come = marked("It costs the big one now.", "It weighs the small two now.")
    assert gone == ["costs the big one"] and come == ["weighs the small two"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_both_texts_are_shown_whole(one: str, other: str) -> None:
    found = compared(one, other)
    assert "".join(piece.text for piece in found.one) == one
    assert "".join(piece.text for piece in found.other) == other


def test_what_would_take_long_is_not_compared() -> None:
    longest = "a " * MAX_WORDS
    assert difference(longest + "a", longest) is None and difference(longest, longest + "a") is None
    began = time.process_time()
    assert difference(longest, "b a " * (MAX_WORDS // 2)) is not None
    assert time.process_time() - began < 5
