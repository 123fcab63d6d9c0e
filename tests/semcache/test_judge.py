"""Several nearest questions with one answer speak for it; they never speak against evidence of a difference."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from semcache.decision import Hit, Reason
from semcache.judge import judge
from semcache.rules.policy import Rule

RULE = Rule(id=1, name="rule", accept_similarity=0.9, verify_similarity=0.8)
LONG = (
    "We deliver within two working days to every address in the country, and you are told by mail when. " * 2
)


def hit(number: int, question: str, answer: str = LONG, similarity: float = 0.95) -> Hit:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Hit(number, question, answer, (), "", 1, now, 0, similarity - number / 1000)


def neighbours(*answers: str, question: str = "How fast is delivery?") -> list[Hit]:
    return [hit(number, f"{question}{' ' * number}", answer) for number, answer in enumerate(answers)]


def test_three_nearest_questions_with_one_answer_overrule_missing_words():
    other = hit(9, "How much is delivery?", "Another answer.", similarity=0.9)
    judged = judge(RULE, "How soon will my parcel come?", [*neighbours(LONG, LONG, LONG), other])
    assert judged.hit is not None
    assert judged.hit.entry_id == 0


def test_many_that_agree_are_heard_although_the_nearest_differs():
    nearest = [hit(number, f"How fast is delivery{'?' * number}", LONG) for number in range(1, 8)]
    other = hit(0, "How much is delivery?", "Another answer.")
    judged = judge(RULE, "How soon will my parcel come?", [other, *nearest])
    assert judged.hit is not None
    assert judged.hit.entry_id == 1


def test_what_is_as_near_and_differs_takes_the_vote_away():
    assert judge(RULE, "How soon will my parcel come?", neighbours(LONG, LONG, LONG, "Another.")).hit is None


@pytest.mark.parametrize(
    "answers",
    [(LONG, LONG), (LONG, LONG, "Another answer."), ("Another answer.", LONG, LONG, LONG), ("Yes.",) * 3],
    ids=["too few", "one differs", "the nearest differs", "too short to mean it"],
)
def test_fewer_other_or_short_answers_overrule_nothing(answers):
    judged = judge(RULE, "How soon will my parcel come?", neighbours(*answers))
    assert (judged.hit, judged.reason) == (None, Reason.GREY_ZONE)


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("What is the fee for 2 bags?", "What does luggage of 3 bags cost?"),
        ("Is the shop open on Monday?", "Can I come to the shop on Sunday?"),
        ("Which plans include roaming?", "Which plans have no data roaming?"),
        ("How do I get to the Oslo office?", "How do I get to your Bergen branch?"),
    ],
)
def test_agreement_never_overrules_numbers_days_negation_or_names(stored, asked):
    assert judge(RULE, asked, neighbours(LONG, LONG, LONG, question=stored)).hit is None


def test_a_second_opinion_is_asked_where_only_words_are_missing_however_near():
    judged = judge(RULE, "How soon will my parcel come?", neighbours("One.", "Two."))
    assert [doubt.hit.entry_id for doubt in judged.unsure] == [0, 1]
    assert judge(RULE, "How fast is delivery of 3 bags?", neighbours("One.", "Two.")).unsure == ()


def test_agreement_serves_nothing_that_is_too_far_to_be_looked_at():
    far = [hit(number, "How fast is delivery?", LONG, similarity=0.79) for number in range(3)]
    assert judge(RULE, "How soon will my parcel come?", far).hit is None


def test_under_a_strict_rule_nothing_overrules_a_missing_word():
    strict = replace(RULE, is_strict=True)
    asked = "How soon will my parcel come?"
    judged = judge(strict, asked, neighbours(LONG, LONG, LONG))
    assert (judged.hit, judged.reason, judged.unsure) == (None, Reason.GUARDED, ())
    assert judge(RULE, asked, neighbours(LONG, LONG, LONG)).hit is not None
    assert judge(RULE, asked, neighbours("Soon.")).unsure, "the verifier would be asked"


def test_a_strict_rule_serves_what_the_guard_finds_no_difference_in():
    strict = replace(RULE, is_strict=True)
    assert judge(strict, "how fast is delivery?", neighbours("Fast.")).hit is not None
    grey = judge(replace(strict, accept_similarity=0.99), "how fast is delivery?", neighbours("Fast."))
    assert grey.hit is None and len(grey.unsure) == 1, "a second opinion may still agree"
