"""What is guessed: what followed the latest place where the text said the same."""

from __future__ import annotations

import pytest

from inference.core.drafts import FIRST_DRAFT, FIRST_PAUSE, MAX_DRAFT, MAX_PAUSE, Drafts
from inference.core.prompt_lookup import FIRST_CAPACITY, PromptLookup


@pytest.mark.parametrize(
    ("text", "num_tokens", "draft"),
    [
        ([1, 2, 3, 4, 5, 6, 1, 2, 3], 3, [4, 5, 6]),
        ([1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3], 2, [5, 1]),  # the latest
        ([1, 2, 3, 4, 9, 2, 3, 5, 7, 1, 2, 3], 1, [4]),  # three before two, although two stand later
        ([8, 2, 3, 4, 9, 2, 3], 2, [4, 9]),  # two where three stand nowhere
        ([8, 3, 4, 9, 3], 2, []),  # one says nothing
        ([5, 5, 5, 5], 6, [5] * 6),  # past the end: the draft goes on in the circle
        ([7, 1, 2, 1, 2, 1, 2], 5, [1, 2, 1, 2, 1]),
        ([1, 2], 4, []),
        ([1], 4, []),
        ([], 4, []),
    ],
)
def test_a_draft_is_what_followed_the_latest_equal_end(text, num_tokens, draft) -> None:
    assert PromptLookup().draft(text, num_tokens) == draft


def test_a_text_that_grows_is_read_once_and_found_whole() -> None:
    lookup, text = PromptLookup(), list(range(FIRST_CAPACITY - 1))
    assert lookup.draft(text, 4) == []
    for token in (0, 1, 2):
        text.append(token)
        lookup.draft(text, 4)
    assert lookup.draft(text, 4) == [3, 4, 5, 6]
    assert lookup.draft([*text, 3], 2) == PromptLookup().draft([*text, 3], 2) == [4, 5]


def test_drafts_grow_while_they_are_right_and_rest_longer_each_time_they_are_wrong() -> None:
    drafts = Drafts()
    lengths = []
    for _ in range(4):
        lengths.append(drafts.length)
        drafts.judge(drafts.length, drafts.length, num_generated=0)
    assert (lengths[0], lengths[-1], drafts.length) == (FIRST_DRAFT, MAX_DRAFT, MAX_DRAFT)
    pauses, now = [], 0
    for _ in range(8):
        drafts.judge(drafts.length, 0, now)
        first_due = next(n for n in range(now, now + 1000) if drafts.is_due(n))
        pauses.append(first_due - now)
        now = first_due
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == MAX_PAUSE
    assert drafts.length == FIRST_DRAFT
    drafts.judge(2, 1, now)
    drafts.judge(2, 0, now)
    assert drafts.is_due(now + FIRST_PAUSE), "one that was right makes up for the wrong ones"


@pytest.mark.parametrize(
    ("num_drafted", "num_accepted", "rests"),
    [(2, 0, True), (2, 1, False), (4, 1, False), (8, 1, True), (8, 2, False)],
)
def test_a_draft_that_pays_for_its_rows_is_no_reason_to_rest(num_drafted, num_accepted, rests) -> None:
    drafts = Drafts()
    drafts.judge(num_drafted, num_accepted, 10)
    assert drafts.is_due(10) != rests
