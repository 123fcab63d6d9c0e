"""The one check of whether two answers say the same asks the verifier where it can, and never fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from semcache.decision import NoVerifier
from semcache.quality.sameness import Sameness, compared

STORED, MADE = "We open at nine. Come early.", "The doors are open from nine. Ring the bell."


async def test_the_verifier_hears_the_first_sentences_and_decides() -> None:
    heard: list[tuple[str, str]] = []

    async def doubting(pairs: list[tuple[str, str]]) -> Sequence[float]:
        heard.extend(pairs)
        return [0.2]

    assert await compared(STORED, MADE, doubting) == Sameness(is_same=False, score=0.2)
    assert heard == [("We open at nine.", "The doors are open from nine.")]


@pytest.mark.parametrize("trouble", [NoVerifier(), ConnectionError("away"), TimeoutError()])
async def test_without_its_word_the_words_decide(trouble: Exception) -> None:
    async def failing(pairs: list[tuple[str, str]]) -> Sequence[float]:
        raise trouble

    for verify in (failing, None):
        assert await compared(STORED, STORED, verify) == Sameness(is_same=True, score=None)
        assert await compared(STORED, "Bananas grow in Ecuador.", verify) == Sameness(
            is_same=False, score=None
        )
