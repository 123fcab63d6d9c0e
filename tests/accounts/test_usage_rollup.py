"""Days of the ledger: summed up once whatever happens, complete with what is not summed up yet, kept as long as set."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from chatsite.accounts import tasks
from chatsite.accounts.keys import create_key
from chatsite.accounts.ledger import report, rollup
from chatsite.accounts.ledger.report import ALL_GROUPS, Line, Scope
from chatsite.accounts.models import Tenant, UsageDay, UsageRecord, User

MakeUser = Callable[..., User]
TODAY = datetime.now(UTC).date()


def record(user: User | None, days_ago: int, hour: int = 12, **fields: Any) -> UsageRecord:
    at = rollup.start_of(TODAY - timedelta(days=days_ago)) + timedelta(hours=hour)
    defaults = {
        "tenant": user.tenant if user else Tenant.objects.default(),
        "model": "m",
        "origin": "model",
        "state": "complete",
        "currency": "USD",
        "prompt_tokens": 100,
        "reused_tokens": 60,
        "prefilled_tokens": 40,
        "generated_tokens": 10,
        "block_seconds": 2.5,
        "device_seconds": 0.25,
        "cost": Decimal("0.000000001"),
        "saved_tokens": 3,
        "saved_ms": 1.5,
        "saved_cost": Decimal("0.5"),
    }
    return UsageRecord.objects.create(generation=uuid.uuid4(), user=user, created_at=at, **defaults | fields)


def some_usage(make_user: MakeUser, days: range = range(6)) -> User:
    """Of every kind, on every one of `days` ago, and at both ends of a day."""
    ann, bob = make_user("ann"), make_user("bob", tenant=Tenant.objects.create(slug="other", name="Other"))
    key, _ = create_key(ann, "job", ["chat"])
    for days_ago in days:
        record(ann, days_ago, hour=0)
        record(ann, days_ago, api_key=key, model="n", cost=Decimal("0.25"))
        record(ann, days_ago, origin="exact", currency="")
        record(bob, days_ago, kind="embedding", model="e5")
        record(None, days_ago, hour=23, origin="again")
    return ann


def everything(since: date = TODAY - timedelta(days=30)) -> list[Line]:
    return report.usage(Scope(since), list(ALL_GROUPS))


def rolled() -> list[dict[str, Any]]:
    rows = UsageDay.objects.order_by("day", "user", "model", "kind", "origin", "currency")
    return [{name: value for name, value in row.items() if name != "id"} for row in rows.values()]


def test_reports_are_the_same_before_while_and_after_days_are_rolled_up(make_user: MakeUser) -> None:
    ann = some_usage(make_user)
    before = everything()
    assert report.totals(before)[1].answers == 6 * 2 and report.totals(before)[1].embeddings == 6
    assert report.totals(before)[0].cache_hits == 6
    assert report.totals(before)[1].cost == 6 * (Decimal("0.25") + 3 * Decimal("0.000000001"))
    for today in (TODAY - timedelta(days=3), TODAY):  # a part, then all but the day that goes on
        rollup.roll_up(today)
        assert everything() == before
    assert UsageDay.objects.count() == 5 * 5 and not UsageDay.objects.filter(day=TODAY).exists()
    UsageRecord.objects.filter(created_at__lt=rollup.start_of(TODAY)).delete()
    assert everything() == before
    mine = report.usage(Scope(TODAY - timedelta(days=2), user=ann.pk), ["day"])
    assert [line.group["day"] for line in mine] == sorted((line.group["day"] for line in mine), reverse=True)
    assert sum(line.sums.answers for line in mine) == 3 * 3


def test_a_day_done_again_is_the_same_day_and_takes_late_rows_in(make_user: MakeUser) -> None:
    ann = some_usage(make_user)
    rollup.roll_up(TODAY)
    once = rolled()
    assert rollup.roll_up(TODAY) == [TODAY - timedelta(days=number) for number in (3, 2, 1)]
    assert rolled() == once
    record(ann, 1, hour=23, generated_tokens=1000)
    rollup.roll_up(TODAY)
    late = sum(row["generated_tokens"] for row in rolled()) - sum(row["generated_tokens"] for row in once)
    assert late == 1000


def test_days_in_which_nothing_was_rolled_up_are_made_good(make_user: MakeUser) -> None:
    some_usage(make_user, range(8, 11))
    rollup.roll_up(TODAY - timedelta(days=8))
    UsageRecord.objects.filter(created_at__lt=rollup.start_of(TODAY - timedelta(days=8))).delete()
    before = everything()
    assert rollup.roll_up(TODAY) == [TODAY - timedelta(days=8)]
    assert everything() == before


class Killed(BaseException):
    """What a worker that is killed leaves behind: whatever was committed."""


def test_a_roll_up_that_is_killed_anywhere_is_finished_by_the_next(
    make_user: MakeUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_usage(make_user)
    before = everything()
    insert = UsageDay.objects.bulk_create
    num_done = 0

    def killed(*args: Any, **kwargs: Any) -> Any:
        nonlocal num_done
        num_done += 1
        if num_done % 2 == 0:
            raise Killed
        return insert(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(UsageDay.objects, "bulk_create", killed)
        for _ in range(3):
            with pytest.raises(Killed):
                rollup.roll_up(TODAY)
            assert everything() == before
    rollup.roll_up(TODAY)
    assert everything() == before
    assert UsageDay.objects.count() == 5 * 5


@pytest.mark.django_db(transaction=True)
def test_two_beats_at_once_count_nothing_twice(make_user: MakeUser) -> None:
    if not Tenant.objects.filter(is_default=True).exists():
        Tenant.objects.create(slug="default", name="Default", is_default=True)
    some_usage(make_user)
    before = everything()
    tasks.roll_up_usage()
    num_alone = UsageDay.objects.count()
    UsageDay.objects.all().delete()

    def work() -> None:
        try:
            tasks.roll_up_usage()
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert UsageDay.objects.count() == num_alone > 0
    assert everything() == before


def test_rows_are_kept_unless_set_and_let_go_only_when_their_day_is_summed_up(make_user: MakeUser) -> None:
    ann = make_user()
    for days_ago in (1, 8, 30, 31):
        record(ann, days_ago)
    before = everything(TODAY - timedelta(days=60))
    assert rollup.let_go(TODAY, 30) == 0  # nothing is summed up
    rollup.roll_up(TODAY)
    owed = record(ann, 40, is_owed=True)
    assert rollup.let_go(TODAY, 0) == 0
    assert rollup.let_go(TODAY, 30) == 1
    assert rollup.let_go(TODAY, 1) == 2  # a week is kept whatever is set
    assert {row.pk for row in UsageRecord.objects.all()} >= {owed.pk}
    owed.delete()
    assert everything(TODAY - timedelta(days=60)) == before


def test_erased_people_leave_their_counts_and_no_name(make_user: MakeUser) -> None:
    ann = some_usage(make_user)
    rollup.roll_up(TODAY)
    total = report.totals(everything())
    ann.delete()
    rollup.roll_up(TODAY)
    assert report.totals(everything()) == total
    assert {line.group["user"] for line in everything()} == {"", "bob"}
    assert {line.group["key"] for line in everything()} == {""}
