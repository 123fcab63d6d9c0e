"""The quotas in force for a caller, each with the window that runs now.

Read anew for every admission, so that what staff change counts in every process from the next question on. Knows who
asks; knows no counter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from chatsite import statements
from chatsite.accounts.models import ApiKey, Quota
from chatsite.chat.turn import Caller

Applies = Quota.Applies
# Whom a quota counts for, and among those of one window which comes first: one's own, a guest's, everybody's.
CountsFor = Literal["tenant", "key", "user"]
COUNTS_FOR: dict[Quota.Applies, CountsFor] = {
    Applies.TENANT: "tenant",
    Applies.EACH_TENANT: "tenant",
    Applies.KEY: "key",
    Applies.EACH_KEY: "key",
    Applies.USER: "user",
    Applies.EACH_GUEST: "user",
    Applies.EACH_USER: "user",
}
# With the database's time, and with those of all the caller's keys: one may have taken the place of the one that asks.
APPLYING = """
SELECT applies, api_key_id, window_s, max_requests, max_tokens, statement_timestamp() FROM accounts_quota
 WHERE applies = ANY(%(applies)s) OR tenant_id = %(tenant)s OR user_id = %(user)s
    OR (%(has_key)s AND api_key_id IN (SELECT id FROM accounts_apikey WHERE user_id = %(user)s))
"""
PRECEDENCE = {applies: place for place, applies in enumerate(COUNTS_FOR)}


@dataclass(frozen=True, slots=True)
class Limit:
    """One quota as it binds one subject in the window that began at `starts_at`. None: no limit of this kind."""

    counts_for: CountsFor
    subject: str
    window_s: int
    starts_at: datetime
    max_requests: int | None
    max_tokens: int | None

    @property
    def resets_at(self) -> datetime:
        return self.starts_at + timedelta(seconds=self.window_s)


class Applying(NamedTuple):
    """A quota's row, and the time at which it was read."""

    applies: str
    api_key: UUID | None
    window_s: int
    max_requests: int | None
    max_tokens: int | None
    now: datetime


def in_force(caller: Caller) -> list[Limit]:
    """At most one for each of the caller's subjects and lengths of window."""
    applying = _applying(caller)
    if caller.api_key is not None and any(COUNTS_FOR[Applies(quota.applies)] == "key" for quota in applying):
        caller = replace(caller, api_key=_last_of(caller.api_key))
        applying = [quota for quota in applying if quota.api_key in (None, caller.api_key)]
    subjects = subjects_of(caller)
    chosen: dict[tuple[CountsFor, int], Applying] = {}
    for quota in sorted(applying, key=lambda quota: PRECEDENCE[Applies(quota.applies)]):
        chosen.setdefault((COUNTS_FOR[Applies(quota.applies)], quota.window_s), quota)
    return [
        Limit(
            counts_for,
            subjects[counts_for],
            window_s,
            window_start(quota.now, window_s),
            quota.max_requests,
            quota.max_tokens,
        )
        for (counts_for, window_s), quota in chosen.items()
    ]


def subjects_of(caller: Caller) -> dict[CountsFor, str]:
    """The names under which a caller is counted."""
    named: dict[CountsFor, Any] = {"tenant": caller.tenant, "user": caller.user_id, "key": caller.api_key}
    return {counts_for: subject(counts_for, name) for counts_for, name in named.items() if name is not None}


def subject(counts_for: CountsFor, name: Any) -> str:
    """As counters name it."""
    return f"{counts_for}:{name}"


def _last_of(key: UUID) -> UUID:
    """The key that took this one's place, if one did: while both are good they share what either may use."""
    replaced_by: UUID | None = key
    while replaced_by is not None:
        key = replaced_by
        replaced_by = ApiKey.objects.filter(pk=key).values_list("replaced_by", flat=True).first()
    return key


def window_start(now: datetime, window_s: int) -> datetime:
    """When the window began: windows follow each other from the epoch on, so every process has the same."""
    seconds = int(now.timestamp())
    return datetime.fromtimestamp(seconds - seconds % window_s, UTC)


def _applying(caller: Caller) -> list[Applying]:
    applies = [Applies.EACH_TENANT, Applies.EACH_USER]
    applies += [Applies.EACH_GUEST] if caller.is_guest else []
    applies += [Applies.EACH_KEY] if caller.api_key is not None else []
    subjects = {"tenant": int(caller.tenant), "user": caller.user_id, "has_key": caller.api_key is not None}
    return [
        Applying(*row) for row in statements.every(APPLYING, {"applies": [*map(str, applies)]} | subjects)
    ]
