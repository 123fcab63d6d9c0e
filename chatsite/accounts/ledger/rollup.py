"""Days of the ledger: each finished day (UTC) summed up once by who asked, and records that are old enough let go.

A day is replaced whole in one transaction under one lock, so it may be done again, by two at once, or be killed in the
middle. The last days are done again every time, for rows that came late. All days up to the newest one in the table are
there; what is younger is in the records only. Synchronous; knows no clock but the one it is given.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from django.db import connection, transaction
from django.db.models import Count, Max, Sum
from django.db.models.functions import TruncDate

from chatsite.accounts.models import UsageDay, UsageRecord

# Rows of a day may be written, or get their figures, for so many days after it.
LATE_DAYS = 3
# Records are the only copy of what is not rolled up for good, so that a short setting must not cost a late row.
LEAST_KEPT_DAYS = 7
# A busy day has more rows than other statements may take time for.
PATIENCE_S = 120
DELETED_AT_ONCE = 10_000
# Any number that nothing else locks.
LOCK = 0x52696C6C55736167

DIMENSIONS = ("tenant_id", "user_id", "api_key_id", "kind", "model", "origin", "currency")
SUMS = (
    "prompt_tokens", "reused_tokens", "prefilled_tokens", "generated_tokens", "block_seconds", "device_seconds",
    "cost", "saved_tokens", "saved_ms", "saved_cost",
)  # fmt: skip


def start_of(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def last_rolled() -> date | None:
    """The newest day in the table."""
    newest: date | None = UsageDay.objects.aggregate(newest=Max("day"))["newest"]
    return newest


def roll_up(today: date) -> list[date]:
    """Sums up what is finished and not in the table yet, and the last days again; the days that were."""
    rolled = last_rolled()
    late = today - timedelta(days=LATE_DAYS)
    since = late if rolled is None else min(late, rolled + timedelta(days=1))
    records = UsageRecord.objects.filter(created_at__lt=start_of(today))
    if rolled is not None:
        records = records.filter(created_at__gte=start_of(since))
    on = TruncDate("created_at", tzinfo=UTC)
    days: list[date] = list(records.annotate(on=on).values_list("on", flat=True).distinct().order_by("on"))
    for day in days:
        _replace(day)
    return days


def let_go(today: date, keep_days: int) -> int:
    """Deletes records that are older and rolled up for good; how many. 0 keeps all."""
    rolled = last_rolled()
    if not keep_days or rolled is None:
        return 0
    kept = today - timedelta(days=max(keep_days, LEAST_KEPT_DAYS))
    old = UsageRecord.objects.filter(created_at__lt=start_of(min(kept, rolled)), is_owed=False)
    num_deleted = 0
    while True:
        deleted, _ = UsageRecord.objects.filter(pk__in=old.values("pk")[:DELETED_AT_ONCE]).delete()
        num_deleted += deleted
        if deleted < DELETED_AT_ONCE:
            return num_deleted


@transaction.atomic
def _replace(day: date) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(PATIENCE_S * 1000)])
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    records = UsageRecord.objects.filter(
        created_at__gte=start_of(day), created_at__lt=start_of(day + timedelta(days=1))
    )
    sums = records.values(*DIMENSIONS).annotate(
        answers=Count("pk"), **{f"sum_{name}": Sum(name) for name in SUMS}
    )
    rows = [
        UsageDay(
            day=day,
            answers=row["answers"],
            **{name: row[name] for name in DIMENSIONS},
            **{name: row[f"sum_{name}"] for name in SUMS},
        )
        for row in sums.order_by()
    ]
    UsageDay.objects.filter(day=day).delete()
    UsageDay.objects.bulk_create(rows, batch_size=1000)
