"""Thumbs and staff's marks are evidence against the rule that served, where it served by meaning."""

from __future__ import annotations

import threading
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.utils import timezone

from semcache import service
from semcache.models import CacheCheck, CacheEntry, CacheRule
from semcache.quality import complaints
from semcache.service import Complaint, Served
from tests.semcache import factories
from tests.semcache.factories import all_alike, ask

STORED, ASKED = "Which plans include backup?", "Which of the plans include a backup?"


@pytest.fixture(autouse=True)
def only_rule(committed) -> CacheRule:
    return factories.rule(sharing="public")


def served(entry_id: int | None, asked: str = ASKED, generation: UUID | None = None, **changes) -> Served:
    assert entry_id is not None
    values = {
        "tenant": "default",
        "owner": "user:1",
        "generation": generation or uuid4(),
        "served_at": timezone.now(),
    }
    return Served(entry_id, asked, **(values | changes))


async def checks() -> list[CacheCheck]:
    return [row async for row in CacheCheck.objects.order_by("id")]


async def stored_and_served() -> int | None:
    stored = await factories.store(STORED, "All.", all_alike)
    await ask(ASKED, all_alike)
    await service.flush_hits()
    return stored


async def test_a_thumb_down_counts_once_with_what_the_log_knows_of_the_pair(only_rule):
    stored, generation = await stored_and_served(), uuid4()
    for _ in range(2):
        await service.complain(served(stored, generation=generation), Complaint.THUMBS_DOWN)
    (check,) = await checks()
    assert (check.kind, check.is_wrong, check.rule_id, check.entry, check.generation) == (
        "thumb", True, only_rule.pk, stored, generation,
    )  # fmt: skip
    assert check.similarity is not None and check.similarity > 0.97


async def test_a_thumb_up_says_that_it_was_right(only_rule):
    stored = await stored_and_served()
    await service.approve(served(stored))
    assert [(check.kind, check.is_wrong) for check in await checks()] == [("thumb", False)]


@pytest.mark.parametrize("act", ["up", "down"])
@pytest.mark.parametrize(
    "changes", [{"asked": STORED}, {"owner": "user:2", "tenant": "x"}, {"served_at": None}]
)
async def test_thumbs_on_the_same_words_from_elsewhere_or_of_unknown_time_are_no_evidence(act, changes):
    await CacheRule.objects.aupdate(sharing="private")
    service.forget_rules()
    stored = await stored_and_served()
    if act == "up":
        await service.approve(served(stored, **changes))
    else:
        await service.complain(served(stored, **changes), Complaint.THUMBS_DOWN)
    assert await checks() == []


async def test_asking_afresh_is_no_evidence():
    stored = await stored_and_served()
    await service.complain(served(stored), Complaint.ASKED_FRESH)
    assert await checks() == []


async def test_staffs_mark_counts_once_for_each_answer(only_rule):
    stored = await stored_and_served()
    other = await factories.store("Who founded the company?", "Ada.", all_alike)
    await sync_to_async(complaints.mark_wrong)([stored, other])
    found = [
        (check.kind, check.is_wrong, check.entry, check.similarity is not None) for check in await checks()
    ]
    assert found == [("staff", True, stored, True), ("staff", True, other, False)]


def test_a_thumb_and_staffs_mark_on_one_answer_never_wait_in_a_circle(only_rule):
    """Staff's mark takes the entry and then its rule; a thumb that came the other way round would close the circle."""
    only_rule.sharing = "private"
    only_rule.save()
    entry = factories.row("a" * 64, "b" * 64, only_rule, question=STORED)
    ended: list[bool] = []

    def rate() -> None:
        ended.append(complaints.complain(served(entry.pk), Complaint.THUMBS_DOWN))
        connection.close()

    rater = threading.Thread(target=rate)
    with transaction.atomic():
        CacheEntry.objects.select_for_update().get(pk=entry.pk)
        rater.start()
        until_somebody_waits()
        CacheRule.objects.select_for_update(no_key=True, nowait=True).get(pk=only_rule.pk)
    rater.join()
    assert ended == [True]


def until_somebody_waits() -> None:
    """Until another connection waits for what this one holds."""
    with connection.cursor() as cursor:
        found = False
        while not found:
            cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
            ((found,),) = cursor.fetchall()
