"""The accounts' work for celery, as doors: each task calls one function."""

from __future__ import annotations

from datetime import UTC, datetime

from celery import shared_task
from django.conf import settings

from chatsite.accounts.ledger import rollup
from chatsite.accounts.quotas import settlement
from chatsite.accounts.sessions import SessionStore

SETTLE_KILLED_AFTER_S = 120

BEAT_SCHEDULE = {
    "accounts-settle-quotas": {
        "task": "accounts.settle_quotas",
        "schedule": 60.0,
        "options": {"expires": 59},
    },
    "accounts-forget-sessions": {
        "task": "accounts.forget_sessions",
        "schedule": 3600.0,
        "options": {"expires": 3590},
    },
    "accounts-roll-up-usage": {
        "task": "accounts.roll_up_usage",
        "schedule": 3600.0,
        "options": {"expires": 3590},
    },
}


@shared_task(name="accounts.settle_quotas", time_limit=SETTLE_KILLED_AFTER_S)
def settle_quotas() -> int:
    """Charges what nobody settled in time, and deletes counters of windows that are over; how many in all."""
    return settlement.settle_expired() + settlement.forget_old()


@shared_task(name="accounts.forget_sessions")
def forget_sessions() -> None:
    """Deletes sessions that are over."""
    SessionStore.clear_expired()


@shared_task(name="accounts.roll_up_usage")
def roll_up_usage() -> int:
    """Sums up the days of the usage ledger that are over, and lets old rows go; how many days."""
    today = datetime.now(UTC).date()
    days = rollup.roll_up(today)
    rollup.let_go(today, settings.CONFIG.usage_keep_days)
    return len(days)
