"""CE-01: what is due when stands in one place, shows in the admin once, and is dropped when it comes late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from celery.schedules import crontab
from django.contrib import admin
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import ModelEntry

from chatsite.celery import app
from semcache import tasks

TASKS = (tasks.expire_entries, tasks.enforce_capacity, tasks.store_imports, tasks.rebuild_shared_index)
TASKS += (
    tasks.watch_entries,
    tasks.embed_anew,
    tasks.roll_up_hours,
    tasks.delete_old_checks,
    tasks.forget_askers,
    tasks.make_comparisons,
    tasks.run_cases,
)


def test_the_schedule_names_every_task_and_drops_late_runs():
    assert {entry["task"] for entry in tasks.BEAT_SCHEDULE.values()} == {task.name for task in TASKS}
    for entry in tasks.BEAT_SCHEDULE.values():
        schedule = entry["schedule"]
        assert entry["options"]["expires"] < (86_400 if isinstance(schedule, crontab) else schedule)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_killed_in_time_and_delivered_again_when_its_worker_dies(task):
    assert task.time_limit and task.time_limit < 3600
    assert task.acks_late and task.reject_on_worker_lost
    assert task.time_limit > tasks.RUN_S


def start_beat() -> None:
    """What beat does with the schedule when it starts."""
    for name, entry in app.conf.beat_schedule.items():
        ModelEntry.from_entry(name, app=app, **entry)


@pytest.mark.django_db
def test_two_beats_put_each_entry_into_the_admin_once():
    start_beat()
    start_beat()
    names = list(PeriodicTask.objects.filter(name__startswith="semcache-").values_list("name", flat=True))
    assert sorted(names) == sorted(tasks.BEAT_SCHEDULE)
    assert admin.site.is_registered(PeriodicTask)


@pytest.mark.django_db
def test_what_an_operator_switched_off_stays_off_when_beat_starts_again():
    start_beat()
    PeriodicTask.objects.filter(name="semcache-enforce-capacity").update(enabled=False)
    start_beat()
    assert not PeriodicTask.objects.get(name="semcache-enforce-capacity").enabled


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("change", [datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)])
def test_the_nightly_task_is_due_once_a_night_also_over_the_clock_changes(zone, change):
    place, now = ZoneInfo(zone), change
    nightly = crontab(hour=3, minute=40, nowfun=lambda: now.astimezone(place), app=app)
    nightly.tz = place
    last, runs = change, []
    while now < change + timedelta(days=3):
        if nightly.is_due(last.astimezone(place)).is_due:
            runs.append(now)
            last = now
        now += timedelta(minutes=5)
    assert len(runs) == 3
