"""The groups of questions written by hand: whole, on one side only, and as many traps as paraphrases."""

from __future__ import annotations

import pytest

from inference.verifier.frames import LANGUAGES
from inference.verifier.generate import folded
from inference.verifier.wordings import read_groups, wordings


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_group_has_wordings_and_traps_and_no_text_stands_in_two_places(language: str) -> None:
    groups = read_groups(language)
    texts = [folded(text) for group in groups for text in (*group.wordings, *group.traps)]
    assert all(len(group.wordings) >= 2 and group.traps for group in groups)
    assert sorted(text for text in set(texts) if texts.count(text) > 1) == []
    assert len(groups) >= 100


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("held_out", [False, True])
def test_there_are_as_many_traps_as_paraphrases(language: str, held_out: bool) -> None:
    pairs = wordings(language, 2, seed=0, held_out=held_out)
    num_same = sum(pair.same for pair in pairs)
    assert num_same > 50
    assert num_same == len(pairs) - num_same


@pytest.mark.parametrize("language", LANGUAGES)
def test_held_out_groups_are_never_trained_on(language: str) -> None:
    held_out = [group for group in read_groups(language) if group.is_held_out]
    trained = {folded(pair.first) for pair in wordings(language, 4, seed=0)}
    assert held_out
    assert not trained & {folded(text) for group in held_out for text in (*group.wordings, *group.traps)}


def test_the_same_seed_gives_the_same_pairs_and_another_gives_others() -> None:
    assert wordings("en", 1, seed=3) == wordings("en", 1, seed=3)
    assert wordings("en", 1, seed=3) != wordings("en", 1, seed=4)
