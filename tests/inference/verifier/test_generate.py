"""The rules that keep labels true: what a frame, a vocabulary and a pair may never be."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from inference.verifier.frames import LANGUAGES, SLOT, read_frames, read_vocabularies
from inference.verifier.generate import KINDS, folded, generate
from inference.verifier.noise import slip
from inference.verifier.values import QUANTITIES, chinese_words, english_words

PAIRS = generate(3000, seed=3)


def test_the_same_seed_gives_the_same_pairs_and_another_gives_others() -> None:
    assert generate(300, seed=5) == generate(300, seed=5)
    assert generate(300, seed=5) != generate(300, seed=6)


@pytest.mark.parametrize("held_out", [False, True])
def test_every_kind_and_language_has_as_many_traps_as_paraphrases(held_out: bool) -> None:
    pairs = generate(3000, seed=3, held_out=held_out)
    numbers = Counter((pair.source[:2], pair.kind, pair.same) for pair in pairs)
    assert len(numbers) == len(LANGUAGES) * len(KINDS) * 2
    assert max(numbers.values()) - min(numbers.values()) <= 6


def test_no_two_texts_are_paired_with_both_labels() -> None:
    labels: dict[frozenset[str], bool] = {}
    for pair in PAIRS:
        assert labels.setdefault(frozenset((folded(pair.first), folded(pair.second))), pair.same) == pair.same


def test_a_trap_differs_in_more_than_case_and_marks() -> None:
    assert [pair for pair in PAIRS if not pair.same and folded(pair.first) == folded(pair.second)] == []


def test_paraphrases_and_traps_look_alike() -> None:
    """How much longer one text is than the other, and politeness, tell nothing about the label."""
    num = Counter(pair.same for pair in PAIRS)
    for sign in (
        lambda pair: abs(len(pair.first) - len(pair.second)) > 10,
        lambda pair: any(word in pair.first + pair.second for word in ("Thank", "谢", "Hi,", "请问")),
    ):
        shares = Counter(pair.same for pair in PAIRS if sign(pair))
        assert abs(shares[True] / num[True] - shares[False] / num[False]) < 0.12


def test_held_out_frames_are_never_trained_on() -> None:
    trained = {pair.source for pair in PAIRS}
    held_out = {pair.source for pair in generate(300, seed=3, held_out=True)}
    assert held_out
    assert not held_out & trained


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_forms_of_a_frame_have_the_same_slots(language: str) -> None:
    vocabularies = read_vocabularies(language)
    for frame in read_frames(language):
        assert len(set(frame.forms)) == len(frame.forms) >= 3, frame.name
        for form in frame.forms:
            slots = ["".join(found) for found in SLOT.findall(form)]
            assert tuple(sorted(slots)) == frame.slots, (frame.name, form)
            assert not set("{}") & set(SLOT.sub("", form)), form
        assert {slot.rstrip("2") for slot in frame.slots} <= set(vocabularies), frame.name
    assert len({frame.name for frame in read_frames(language)}) == len(read_frames(language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_spelling_means_two_things(language: str) -> None:
    for vocabulary in read_vocabularies(language).values():
        spellings = [text.casefold() for meaning in vocabulary.meanings for text in meaning.spellings]
        assert len(spellings) == len(set(spellings)), vocabulary.name
        assert all(text.strip() == text != "" for text in spellings), vocabulary.name


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", sorted(QUANTITIES))
def test_two_values_never_share_a_spelling(name: str, language: str) -> None:
    rng, owners = random.Random(1), dict[str, int]()
    for _ in range(300):
        number = QUANTITIES[name].draw(rng)
        near = QUANTITIES[name].near(number, rng)
        assert near != number
        for value in (number, near):
            for text in QUANTITIES[name].meaning(value, language).spellings:
                assert owners.setdefault(text, value) == value


def test_numbers_are_written_as_people_say_them() -> None:
    assert [chinese_words(n) for n in (2, 10, 12, 20, 102, 110, 1005, 1050, 2000)] == [
        "两", "十", "十二", "二十", "一百零二", "一百一十", "一千零五", "一千零五十", "二千"
    ]  # fmt: skip
    assert [english_words(n) for n in (7, 13, 40, 45, 121, 600, 1005, 2340)] == [
        "seven", "thirteen", "forty", "forty-five", "one hundred and twenty-one", "six hundred",
        "one thousand and five", "two thousand three hundred and forty",
    ]  # fmt: skip


def test_a_slip_never_touches_a_slot() -> None:
    rng = random.Random(2)
    for _ in range(50):
        assert "{frequency}" in slip("setting up a backup {frequency}", rng)
