"""The chat's tasks: one schedule that the admin shows, limits of time, late runs dropped, two runs as good as one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import ModelEntry

from chatsite.accounts.models import User
from chatsite.celery import app
from chatsite.chat import erasure, library, receipts, tasks
from chatsite.chat.models import Conversation
from chatsite.db import run_in_db
from tests.chat.conftest import open_socket

SCHEDULED = (tasks.adopt, tasks.erase_temporary, tasks.erase_guests, tasks.settle_erasures)


def test_the_schedule_names_every_periodic_task_and_drops_late_runs() -> None:
    assert {entry["task"] for entry in tasks.BEAT_SCHEDULE.values()} == {task.name for task in SCHEDULED}
    for entry in tasks.BEAT_SCHEDULE.values():
        assert entry["options"]["expires"] < entry["schedule"]


@pytest.mark.parametrize("task", SCHEDULED)
def test_every_task_is_killed_in_time_and_delivered_again_when_its_worker_dies(task: Any) -> None:
    assert tasks.ADOPTED_WITHIN_S < (task.time_limit or app.conf.task_time_limit) < 3600
    assert task.acks_late and task.reject_on_worker_lost


@pytest.mark.django_db
def test_two_beats_put_each_entry_into_the_admin_once() -> None:
    for _ in range(2):
        for name, entry in app.conf.beat_schedule.items():
            ModelEntry.from_entry(name, app=app, **entry)
    assert set(PeriodicTask.objects.values_list("name", flat=True)) >= set(tasks.BEAT_SCHEDULE)
    assert PeriodicTask.objects.filter(name__in=tasks.BEAT_SCHEDULE).count() == len(tasks.BEAT_SCHEDULE)


async def test_two_workers_that_erase_the_same_temporary_chats_erase_them_once(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await open_socket(user)
    old, _ = await socket.ask("old", temporary=True)
    await socket.close()
    past = timezone.now() - timedelta(hours=25)
    await run_in_db(Conversation.objects.filter(pk=old["conversation"]).update, updated_at=past)
    seen = await library.forgotten_temporary(tasks.ERASE_BATCH)

    async def both_saw(limit: int) -> list[Conversation]:
        return seen

    monkeypatch.setattr(library, "forgotten_temporary", both_saw)
    assert sum(await asyncio.gather(tasks._erase(), tasks._erase())) == 1
    assert not await run_in_db(Conversation.objects.exists)


async def test_two_workers_that_erase_the_same_guests_erase_them_once_and_go_on_with_the_next(
    engine: Any, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = timezone.now() - timedelta(seconds=1)
    named = [f"guest-{number}" for number in range(3)]
    for name in named:
        await run_in_db(User.objects.create_user, username=name, is_guest=True, guest_until=past)
    seen = await run_in_db(list, User.objects.filter(username__in=named).order_by("pk"))
    monkeypatch.setattr(tasks, "expired_guests", lambda limit: seen)
    await erasure.erase_user(await run_in_db(User.objects.get, pk=seen[0].pk))
    assert sum(await asyncio.gather(tasks._erase_guests(), tasks._erase_guests())) == 2
    assert not await run_in_db(User.objects.filter(username__in=named).exists)


async def test_two_workers_may_tell_the_stores_the_same(engine: Any, user: User) -> None:
    socket = await open_socket(user)
    await socket.ask("What is the capital of France?")
    await socket.close()
    receipt = await run_in_db(erasure.erase_user_rows, user)
    assert await asyncio.gather(receipts.settle(receipt), receipts.settle(receipt)) == [False, False]


async def test_an_erasure_that_cannot_be_settled_keeps_no_other_waiting(
    engine: Any, user: User, other_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = [await run_in_db(erasure.erase_user_rows, one) for one in (user, other_user)]
    settle = receipts.settle

    async def settled(receipt: UUID) -> bool:
        if receipt == bad:
            raise ValueError("a mistake of ours")
        return await settle(receipt)

    monkeypatch.setattr(receipts, "settle", settled)
    monkeypatch.setattr(receipts, "AGAIN_AFTER", timedelta(0))
    assert await tasks._settle() == 1
    assert await run_in_db(receipts.unfinished) == [bad]
    assert (await run_in_db(receipts.find, good)).finished_at is not None
