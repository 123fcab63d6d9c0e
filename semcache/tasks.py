"""The cache's periodic work for celery, as doors to `eviction`: each task loops over small batches.

`BEAT_SCHEDULE` belongs into the project's CELERY_BEAT_SCHEDULE. Tasks take no arguments and may be delivered
twice, late or to several workers at once.
"""

from __future__ import annotations

from collections.abc import Callable

from celery import shared_task

from semcache import eviction
from semcache.limits import limits

BEAT_SCHEDULE = {
    # A run that could not start before the next one is due is dropped: its work is the next one's.
    "semcache-expire-entries": {
        "task": "semcache.expire_entries",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "semcache-enforce-capacity": {
        "task": "semcache.enforce_capacity",
        "schedule": 120.0,
        "options": {"expires": 110},
    },
}


@shared_task(name="semcache.expire_entries")
def expire_entries() -> int:
    """Delete what is past its time; the number of rows."""
    return _until_none_are_left(eviction.delete_expired)


@shared_task(name="semcache.enforce_capacity")
def enforce_capacity() -> int:
    """Bring every rule, every owner and the whole table within capacity, least recently used first."""
    limit = limits()
    num_deleted = 0
    for rule_id, capacity in eviction.full_rules():
        num_deleted += _until_none_are_left(lambda: eviction.delete_surplus_of_rule(rule_id, capacity))  # noqa: B023
    for tenant, owner in eviction.full_owners(limit.max_per_owner):
        num_deleted += _until_none_are_left(
            lambda: eviction.delete_surplus_of_owner(tenant, owner, limit.max_per_owner)  # noqa: B023
        )
    return num_deleted + _until_none_are_left(lambda: eviction.delete_surplus_in_all(limit.max_entries))


def _until_none_are_left(delete_batch: Callable[[], int]) -> int:
    total = 0
    while num_deleted := delete_batch():
        total += num_deleted
    return total
