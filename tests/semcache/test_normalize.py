"""One cleaning for every text: what becomes equal and what must not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.text.normalize import canonical, clean, exact_key, sha256_of


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("ab\x00cd", "abcd"),
        ("ok \ud83d end", "ok \ufffd end"),
        ("\udc97", "\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\U0001f600", "\U0001f600"),
        ("e\u0301", "\u00e9"),
    ],
)
def test_broken_text_is_mended(raw, expected):
    assert clean(raw) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How are you", "how are you"),
        (" a  b\n", "a b"),
        ("caf\u00e9 x", "cafe\u0301 x"),
        ("What\tis it?", "what is it?"),
    ],
)
def test_harmless_differences_vanish(one, other):
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize("text", ["```" + " " * 200_000 + "x", "a" + "\u0301\u0327" * 100_000])
def test_the_longest_question_of_the_worst_kind_is_no_work(text):
    """Time with the square of the length would hold everybody's answers for minutes; then this never ends."""
    assert canonical(text) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tell US about it", "tell us about it"),
        ("Polish the table", "polish the table"),
        ("if x:\n    y()", "if x:\ny()"),
        ("a?", "a"),
    ],
)
def test_differences_that_may_matter_stay(one, other):
    assert canonical(one) != canonical(other)


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_cleaning_twice_is_cleaning_once_and_always_encodes(text):
    once = canonical(text)
    assert canonical(once) == once
    assert "\x00" not in once.encode("utf-8").decode("utf-8")


def test_the_key_knows_where_text_ends_and_history_begins():
    assert exact_key("a", "b") != exact_key("ab", "") != exact_key("", "ab")
    assert sha256_of("ab", "c") != sha256_of("a", "bc")
    assert len(exact_key("a", "")) == 64
