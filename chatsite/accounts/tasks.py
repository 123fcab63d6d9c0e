"""The accounts' work for celery, as doors: each task calls one function."""

from __future__ import annotations

from celery import shared_task

from chatsite.accounts.quotas import settlement

SETTLE_KILLED_AFTER_S = 120

BEAT_SCHEDULE = {
    "accounts-settle-quotas": {
        "task": "accounts.settle_quotas",
        "schedule": 60.0,
        "options": {"expires": 59},
    },
}


@shared_task(name="accounts.settle_quotas", time_limit=SETTLE_KILLED_AFTER_S)
def settle_quotas() -> int:
    """Charges what nobody settled in time, and deletes counters of windows that are over; how many in all."""
    return settlement.settle_expired() + settlement.forget_old()
