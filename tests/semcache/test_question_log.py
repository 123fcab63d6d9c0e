"""What is kept of look-ups: enough to try rules and thresholds on, and no words that are not the log's to keep."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import Error
from django.utils import timezone

from semcache import service
from semcache.models import CacheEntry, CacheLook, CacheRule
from semcache.quality import question_log
from semcache.quality.question_log import Looked, QuestionLog
from semcache.service import Answer, lookup, remember
from semcache.storage.threads import in_database
from tests.semcache import factories
from tests.semcache.factories import all_alike, all_apart, ask, question

ONE, SAME = "Which plans include backup?", "Which of the plans include a backup?"


@pytest.fixture(autouse=True)
def only_rule(committed) -> CacheRule:
    return factories.rule(sharing="public")


async def change(**values) -> None:
    await CacheRule.objects.aupdate(**values)
    service.forget_rules()


async def kept() -> list[CacheLook]:
    await service.flush_hits()
    return [row async for row in CacheLook.objects.order_by("id")]


async def test_a_hit_is_kept_with_what_it_was_compared_with(only_rule):
    stored = await factories.store(ONE, "In settings.", all_alike)
    await ask(SAME, all_alike)
    miss, hit = await kept()
    assert (miss.outcome, hit.outcome, hit.reason, hit.rule_id) == (
        "miss",
        "hit-semantic",
        "similar",
        only_rule.pk,
    )
    assert (hit.question[1:], hit.neighbour_question[1:], hit.neighbour) == (SAME[1:], ONE[1:], stored)
    assert hit.similarity is not None and hit.similarity > 0.97 and not hit.is_guarded and hit.took_ms > 0


async def test_what_the_guard_forbade_is_told():
    await factories.store("Which plans include backup?", "All.", all_alike)
    await ask("Which plans do not include backup?", all_alike)
    assert [(look.reason, look.is_guarded) for look in await kept()][1:] == [("guarded", True)]


@pytest.mark.parametrize(
    ("sharing", "text", "history"),
    [
        ("private", "Describe rain in winter.", ""),
        ("promoted", "Describe rain in winter.", ""),
        ("public", "Where is my order 41?", ""),
        ("public", "Describe rain in winter.", "what was said before"),
    ],
    ids=["private rule", "not promoted yet", "speaks of its asker", "inside a conversation"],
)
async def test_words_that_are_somebodys_own_are_not_in_the_log(sharing, text, history):
    await change(sharing=sharing)
    await factories.store(text, "an answer", all_alike, history=history)
    await ask(text + " Please.", all_alike, history=history)
    looks = await kept()
    assert len(looks) == 2
    assert {(look.question, look.neighbour_question) for look in looks} == {("", "")}


async def test_a_private_question_is_read_from_its_entry_for_as_long_as_that_is_there():
    await change(sharing="private")
    stored = await factories.store("Describe rain in winter.", "Wet.")
    await service.flush_hits()
    assert [asked.question for asked in await in_database(question_log.recent)] == [
        "describe rain in winter."
    ]
    assert stored is not None
    await service.evict([stored])
    assert await in_database(question_log.recent) == []


async def test_a_temporary_chat_leaves_no_trace():
    await ask("Describe rain in winter.", may_store=False)
    assert await kept() == []


async def test_a_question_that_only_staff_tries_is_not_logged():
    await service.tried(question("Describe rain in winter."), all_apart)
    assert await kept() == []


@pytest.mark.parametrize(("said", "low", "high"), [("In the settings.", 0.6, 1.0), ("Call us.", 0.0, 0.1)])
async def test_a_shadow_rule_keeps_what_it_would_have_served_and_how_far_the_answer_agreed(said, low, high):
    stored = await factories.store(ONE, "In settings.", all_alike)
    await change(mode="shadow")
    asked = question(SAME)
    decision = await lookup(asked, all_alike)
    assert len(await kept()) == 1, "noted before the answer was known"
    await remember(decision, asked, Answer(said, is_complete=True))
    look = (await kept())[-1]
    assert (look.reason, look.neighbour) == ("shadow", stored)
    assert look.agreement is not None and low <= look.agreement <= high


async def test_the_table_stays_within_its_rows_and_its_days(monkeypatch):
    monkeypatch.setattr(question_log, "_TRIM", question_log._TRIM.replace("10000", "5"))
    await ask("Describe rain in winter.")
    await kept()
    await CacheLook.objects.aupdate(asked_at=timezone.now() - timedelta(days=8))
    for number in range(8):
        await ask(f"Describe rain in winter, part {number}.")
    assert [look.question[-2:] for look in await kept()] == [f"{number}." for number in range(3, 8)]


def noted(question: str) -> Looked:
    return Looked(None, "miss", "no-rule", "public", "default", "small", "", "", question)


async def test_while_the_database_is_away_the_oldest_give_way(monkeypatch):
    log = QuestionLog()
    with monkeypatch.context() as away:
        away.setattr(question_log, "_TRIM", "SELECT nonsense")
        for number in range(question_log.MAX_WAITING + 10):
            log.add(noted(str(number)))
        with pytest.raises(Error):
            await in_database(log.flush)
        log.add(noted("after"))
    assert await in_database(log.flush) == question_log.MAX_WAITING
    questions = [look.question async for look in CacheLook.objects.order_by("id")]
    assert (questions[0], questions[-1]) == ("11", "after")


async def test_a_rule_deleted_before_the_write_loses_no_rows(only_rule):
    await ask("Describe rain in winter.")
    await CacheRule.objects.all().adelete()
    assert len(await kept()) == 1
    assert await CacheEntry.objects.acount() == 0
