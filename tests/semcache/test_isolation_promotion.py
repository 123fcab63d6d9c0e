"""SC-05: under a rule that promotes nobody gets what is not everybody's yet, and each way to get it wrong is noticed.

People ask in a random order and get answers of several kinds; after each a stranger asks everything. What the stranger
may get is said here once more and differently.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from types import SimpleNamespace
from uuid import uuid4

import pytest

from semcache import service
from semcache.look import Look
from semcache.quality import promotion
from semcache.service import Answer
from tests.semcache import factories
from tests.semcache.factories import all_alike, ask, question

STRANGER = "user:stranger"


@dataclass(frozen=True, slots=True)
class Topic:
    """A question, the stranger's wording of it, and what the model says to its askers: the same or each its own."""

    text: str
    reworded: str
    answers: tuple[str, ...]
    is_everybodys: bool


TOPICS = (
    Topic("Which plans include backup?", "Which of the plans include a backup?", ("Both plans do.",), True),
    Topic("When does the museum open?", "When does the museum open, please?", ("It opens at 9:30.",), True),
    Topic("Which caller rang?", "Which caller rang, please?", ("The caller was +49 30 901820.",), False),
    Topic("Which guest arrived?", "Which guest arrived, please?", ("Mr Weber from 12 Rose Street.",), False),
    Topic("How high is the tower?", "How high is the tower, please?", ("120 m.", "95 m.", "80 m."), False),
    Topic("What is the plan's colour?", "What is the plan's colour, please?", ("Deep red.", "Blue!", "None."), False),
)  # fmt: skip
# Whoever asks again counts once.
VISITS = tuple((topic, asker) for topic in TOPICS for asker in ("a", "a", "b", "b", "c"))


async def served_too_early(seed: int) -> tuple[int, int]:
    """(answers that the stranger got and may not, those that the stranger got in the end)."""
    await factories.arule(sharing="promoted")
    service.forget_rules()
    askers: dict[Topic, set[str]] = defaultdict(set)
    visits = list(VISITS)
    random.Random(seed).shuffle(visits)
    num_leaks = 0
    for topic, asker in visits:
        askers[topic].add(asker)
        await answered(topic, asker, topic.answers["abc".index(asker) % len(topic.answers)])
        may_have = {topic.text for topic in TOPICS if topic.is_everybodys and len(askers[topic]) == 3}
        num_leaks += sum(text not in may_have for text in await had_by_the_stranger())
    return num_leaks, len(await had_by_the_stranger())


async def answered(topic: Topic, asker: str, answer: str) -> None:
    asked = question(topic.text, owner=asker, may_read=False)
    decision = await service.lookup(asked, all_alike)
    await service.remember(decision, asked, Answer(answer, is_complete=True, generation=uuid4()))


async def had_by_the_stranger() -> list[str]:
    """The questions to which the stranger gets an answer, by the same words or others."""
    return [
        topic.text
        for topic in TOPICS
        for text in (topic.text, topic.reworded)
        if (await ask(text, all_alike, owner=STRANGER, tenant="elsewhere")).hit is not None
    ]


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_stranger_gets_what_three_people_were_told_alike_and_nothing_else(committed, seed):
    num_leaks, num_had = await served_too_early(seed)
    assert num_leaks == 0
    assert num_had == 4  # both wordings of two topics


@pytest.mark.parametrize("num_askers", [1, 2])
async def test_promotion_after_fewer_askers_would_be_noticed(committed, monkeypatch, num_askers):
    monkeypatch.setattr(promotion, "NUM_ASKERS", num_askers)
    assert (await served_too_early(1))[0] > 0


async def test_promotion_that_overlooked_persons_would_be_noticed(committed, monkeypatch):
    monkeypatch.setattr(promotion, "personal", SimpleNamespace(kinds_in=lambda text: frozenset()))
    assert (await served_too_early(1))[0] > 0


async def test_promotion_of_answers_that_disagree_would_be_noticed(committed, monkeypatch):
    monkeypatch.setattr(promotion, "agreement", lambda one, other: 1.0)
    assert (await served_too_early(1))[0] > 0


async def test_counting_one_person_twice_would_be_noticed(committed, monkeypatch):
    monkeypatch.setattr(promotion, "asker_hash", lambda tenant, owner: uuid4().hex)
    assert (await served_too_early(1))[0] > 0


async def test_storing_with_everybody_at_once_would_be_noticed(committed, monkeypatch):
    whole = Look.scopes.fget
    monkeypatch.setattr(Look, "scopes", property(lambda look: whole(look)[::-1]))
    assert (await served_too_early(1))[0] > 0
