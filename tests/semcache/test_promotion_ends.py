"""A public answer goes with whoever it rests on, staff may make one and take it back, and old counts are forgotten."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from semcache import service
from semcache.models import CacheEntry, CachePromotion, CacheRule
from semcache.quality import promotion
from semcache.quality.promotion import Asking
from tests.semcache import factories
from tests.semcache.promoting import REWORDED, answered, asked_by, copies


@pytest.fixture(autouse=True)
def only_rule(committed) -> CacheRule:
    return factories.rule(sharing="promoted", ttl_s=3600)


async def change(**values: Any) -> None:
    await CacheRule.objects.aupdate(**values)
    service.forget_rules()


# Erasing.


def erase(*generations: UUID) -> None:
    with transaction.atomic():
        service.forget(generations)


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_public_answer_goes_with_any_of_those_on_whom_it_rests(place):
    made_by = [await answered(user) for user in (1, 2, 3)]
    await sync_to_async(erase)(made_by[place])
    assert await copies() == []
    row = await CachePromotion.objects.aget()
    assert made_by[place] not in row.generations
    assert promotion.asker_hash("default", f"user:{place + 1}") not in row.askers
    assert len(row.askers) == len(row.entries) == 2


async def test_erasing_finds_the_public_answer_though_the_own_one_left_before():
    made_by = [await answered(user) for user in (1, 2, 3)]
    await CacheEntry.objects.filter(generation__in=made_by).adelete()
    await sync_to_async(erase)(made_by[1])
    assert await copies() == []


async def test_erasing_somebody_else_leaves_the_public_answer():
    for user in (1, 2, 3):
        await answered(user)
    await sync_to_async(erase)(await answered(4, text=REWORDED, may_read=False))
    assert len(await copies()) == 1


async def test_those_who_stay_count_on():
    made_by = [await answered(user) for user in (1, 2, 3)]
    await sync_to_async(erase)(made_by[0])
    await answered(4)
    assert len(await copies()) == 1


async def test_nothing_is_counted_for_an_entry_that_was_erased_meanwhile():
    await answered(1)
    entry = await CacheEntry.objects.aget()
    decision = await asked_by(9)
    rule = await CacheRule.objects.aget()
    await sync_to_async(erase)(entry.generation)
    asking = Asking(
        decision.public_scope,
        decision.prompt_sha256,
        rule.pk,
        60,
        "default",
        "user:1",
        entry.pk,
        entry.generation,
    )
    await sync_to_async(promotion.note)(asking)
    assert [row.askers async for row in CachePromotion.objects.all()] in ([], [[]])


# By staff.


async def test_staff_promotes_what_was_asked_once_and_has_read():
    await answered(1, "Both do. Call +49 30 901820.")
    entry = await CacheEntry.objects.aget()
    assert await sync_to_async(promotion.promote)([entry.pk]) == [entry.pk]
    assert await sync_to_async(promotion.promote)([entry.pk]) == [], "it is public already"
    assert (await asked_by(9)).hit is not None
    await sync_to_async(erase)(entry.generation)
    assert await copies() == []


@pytest.mark.parametrize(
    "text", ["Which plans include my backup?", "Which plans include backup of +49 30 901820?"]
)
async def test_staff_can_not_promote_a_question_that_is_its_askers_own(text):
    await answered(1, text=text)
    entry = await CacheEntry.objects.aget()
    assert await sync_to_async(promotion.promote)([entry.pk]) == []


@pytest.mark.parametrize("values", [{"sharing": "private"}, {"is_enabled": False}, {"ttl_s": 1}])
async def test_staff_can_not_promote_what_the_rule_does_not_promote_any_more(values):
    await answered(1)
    entry = await CacheEntry.objects.aget()
    await CacheEntry.objects.aupdate(created_at=timezone.now() - timedelta(seconds=10))
    await change(**values)
    assert await sync_to_async(promotion.promote)([entry.pk]) == []


# Keeping.


async def test_old_counts_are_forgotten_unless_their_answer_is_public():
    for user in (1, 2, 3):
        await answered(user)
    await answered(1, text="Which plans include a phone?")
    await answered(1, text="Which plans include a router?")
    old = timezone.now() - timedelta(days=promotion.KEPT_DAYS, minutes=1)
    router = await CachePromotion.objects.order_by("-pk").afirst()
    assert router is not None
    await CachePromotion.objects.exclude(pk=router.pk).aupdate(created_at=old)
    assert await sync_to_async(promotion.trim)() == 1
    assert await sync_to_async(promotion.trim)() == 0
    assert {len(row.askers) async for row in CachePromotion.objects.all()} == {3, 1}


async def test_the_oldest_seats_give_way_where_answers_never_agree(monkeypatch):
    monkeypatch.setattr(promotion, "MAX_SEATS", 4)
    for user in range(6):
        await answered(user, f"Plan {user} does, and no other.")
    row = await CachePromotion.objects.aget()
    assert row.askers == [promotion.asker_hash("default", f"user:{user}") for user in (2, 3, 4, 5)]
    assert len(row.entries) == len(row.generations) == 4
