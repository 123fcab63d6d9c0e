"""The cache's periodic work for celery, as doors to `eviction`, `imports`, `comparisons`, `cases`, `hours`,
`budget`, `promotion`, `reembed` and `shared_index`.

`BEAT_SCHEDULE` is the one place where it says when; a project adds it to its own. Tasks take no arguments and may be
delivered twice, late, to several workers at once or be killed at any moment: rows go in batches, each a transaction of
its own, and what is left is the next run's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from celery import shared_task
from celery.schedules import crontab

from semcache.imports import batches as imports
from semcache.limits import limits
from semcache.quality import budget, canary, cases, comparisons, hours, promotion
from semcache.storage import eviction, reembed, shared_index

logger = logging.getLogger(__name__)

# A run stops by itself before the next is due; one that hangs is killed, and the next goes on where it was.
RUN_S = 50.0
KILLED_AFTER_S = 240
# 100,000 shared rows take 36 s (384 numbers each); below the hour after which a broker delivers a task once more.
REBUILD_KILLED_AFTER_S = 3000
# One that is begun at the end of a run may still take its time.
COMPARISONS_KILLED_AFTER_S = 300

BEAT_SCHEDULE = {
    # A run that could not start before the next one is due is dropped: its work is the next one's.
    "semcache-expire-entries": {
        "task": "semcache.expire_entries",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "semcache-embed-anew": {
        "task": "semcache.embed_anew",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "semcache-enforce-capacity": {
        "task": "semcache.enforce_capacity",
        "schedule": 120.0,
        "options": {"expires": 110},
    },
    "semcache-store-imports": {
        "task": "semcache.store_imports",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "semcache-make-comparisons": {
        "task": "semcache.make_comparisons",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "semcache-run-cases": {
        "task": "semcache.run_cases",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    "semcache-watch-entries": {
        "task": "semcache.watch_entries",
        "schedule": 600.0,
        "options": {"expires": 590},
    },
    "semcache-roll-up-hours": {
        "task": "semcache.roll_up_hours",
        "schedule": crontab(hour=3, minute=10),
        "options": {"expires": 3600},
    },
    "semcache-delete-old-checks": {
        "task": "semcache.delete_old_checks",
        "schedule": crontab(hour=3, minute=20),
        "options": {"expires": 3600},
    },
    "semcache-forget-askers": {
        "task": "semcache.forget_askers",
        "schedule": crontab(hour=3, minute=30),
        "options": {"expires": 3600},
    },
    "semcache-rebuild-shared-index": {
        "task": "semcache.rebuild_shared_index",
        "schedule": crontab(hour=3, minute=40),
        "options": {"expires": 3600},
    },
}

# Whatever the project's own settings are: a task that a dying worker held is delivered again.
periodic = partial(shared_task, acks_late=True, reject_on_worker_lost=True, ignore_result=True)


@periodic(name="semcache.expire_entries", time_limit=KILLED_AFTER_S)
def expire_entries() -> int:
    """Delete what is past its time; the number of rows."""
    return _repeated(eviction.delete_expired, _end_of_run())


@periodic(name="semcache.embed_anew", time_limit=KILLED_AFTER_S)
def embed_anew() -> int:
    """Give entries of an embedder of before vectors of the one in force; the number of rows."""
    return _repeated(reembed.renew_next, _end_of_run())


@periodic(name="semcache.enforce_capacity", time_limit=KILLED_AFTER_S)
def enforce_capacity() -> int:
    """Bring every owner, every rule and the whole table within capacity, least recently used first.

    Owners come first: what one of them has too much must not cost others their place in a rule.
    """
    limit, ends_at = limits(), _end_of_run()
    share = limit.max_per_owner
    full = [(eviction.PRIVATE.of_owner(*owner), share) for owner in eviction.full_owners(share)]
    deleted = [_without_surplus(group, capacity, share, ends_at) for group, capacity in full]
    rules = [(eviction.of_rule(rule_id), capacity) for rule_id, capacity in eviction.full_rules()]
    for group, capacity in (*rules, (eviction.EVERYTHING, limit.max_entries)):
        deleted.append(_without_surplus(group, capacity, share, ends_at))
    return sum(deleted)


@periodic(name="semcache.store_imports", time_limit=KILLED_AFTER_S)
def store_imports() -> int:
    """Go on with answers that staff bring in from files; the number of rows dealt with. Sent at once, too."""
    ends_at = _end_of_run()
    return sum(_repeated(partial(imports.store_next, pk), ends_at) for pk in imports.unfinished())


@periodic(name="semcache.make_comparisons", time_limit=COMPARISONS_KILLED_AFTER_S)
def make_comparisons() -> int:
    """Have the model answer what staff compare, and forget what is a day old; how many. Sent at once, too."""
    comparisons.delete_old()
    comparisons.give_up()
    return _repeated(comparisons.make_next, _end_of_run())


@periodic(name="semcache.run_cases", time_limit=KILLED_AFTER_S)
def run_cases() -> int:
    """Judge the regression cases that are due since the rules changed, or staff asked; how many. Sent at once, too."""
    return cases.run_due(_end_of_run())


@periodic(name="semcache.watch_entries", time_limit=KILLED_AFTER_S)
def watch_entries() -> int:
    """Warn of answers that serve suspiciously many different questions; how many there are."""
    suspects = canary.suspects()
    for one in suspects:
        logger.warning(
            "cache entry %d gave %s of the last answers by meaning under the rule %s, to %d different questions",
            one.entry_id, one.percent, one.rule, one.num_questions,
        )  # fmt: skip
    return len(suspects)


@periodic(name="semcache.roll_up_hours", time_limit=KILLED_AFTER_S)
def roll_up_hours() -> int:
    """Make days of what rules did in the hours of more than a month ago; the number of days."""
    return hours.roll_up()


@periodic(name="semcache.delete_old_checks", time_limit=KILLED_AFTER_S)
def delete_old_checks() -> int:
    """Forget what was found out about answers of a quarter ago; the number of rows."""
    return _repeated(budget.delete_old_checks, _end_of_run())


@periodic(name="semcache.forget_askers", time_limit=KILLED_AFTER_S)
def forget_askers() -> int:
    """Forget who asked what did not become public within a month; the number of questions."""
    return _repeated(promotion.trim, _end_of_run())


@periodic(name="semcache.rebuild_shared_index", time_limit=REBUILD_KILLED_AFTER_S)
def rebuild_shared_index() -> list[str]:
    """Build the vector indexes that the shared rows deserve, free of what was deleted; their names."""
    return shared_index.rebuild()


def _without_surplus(group: eviction.Group, capacity: int, share: int, ends_at: float) -> int:
    return _repeated(partial(eviction.delete_surplus, group, capacity, share), ends_at)


def _repeated(do_batch: Callable[[], int], ends_at: float) -> int:
    """Batch after batch until nothing is left or the run's time is over; the number of rows."""
    total = 0
    while time.monotonic() < ends_at and (num_rows := do_batch()):
        total += num_rows
    return total


def _end_of_run() -> float:
    return time.monotonic() + RUN_S
