"""What is said to a caller who may not ask now: a 429, because it is their own share that is used up.

(A full engine is a 503.) Knows standings; knows no counter and no door.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from chatsite.accounts.quotas.standing import Standing
from chatsite.errors import ReplyRefused

# An answer in the making ends at any moment, and gives back what it held and did not use.
RETRY_AFTER_S = 2.0
OF_WHOM = {"user": "this account", "key": "this API key", "tenant": "this business line"}


class QuotaExceeded(ReplyRefused):
    """One of the caller's quotas has no room. `standings` are all that are in force."""

    def __init__(
        self, message: str, standings: Sequence[Standing], resets_at: datetime, retry_after_s: float
    ) -> None:
        super().__init__("quota_exceeded", message, status=429, retry_after_s=retry_after_s)
        self.standings = standings
        self.resets_at = resets_at

    @classmethod
    def of(cls, standings: Sequence[Standing], num_requests: int) -> QuotaExceeded | None:
        """The refusal of so many requests, by the quota that will be in the way longest; None when all have room."""
        full = [one for one in standings if _reason(one, num_requests)]
        if not full:
            return None
        worst = max(full, key=lambda one: (not _is_held_only(one, num_requests), one.resets_at))
        until_reset_s = (worst.resets_at - datetime.now(UTC)).total_seconds()
        retry_after_s = RETRY_AFTER_S if _is_held_only(worst, num_requests) else until_reset_s
        message = f"{_reason(worst, num_requests)} It resets at {worst.resets_at:%Y-%m-%dT%H:%M:%SZ}."
        return cls(message, standings, worst.resets_at, max(1.0, min(retry_after_s, until_reset_s)))


def too_many_live(live: int) -> ReplyRefused:
    return ReplyRefused(
        "rate_limited",
        f"{live} answers are in the making for this account; wait for one to end.",
        status=429,
        retry_after_s=RETRY_AFTER_S,
    )


def unknown_account() -> ReplyRefused:
    return ReplyRefused("unauthenticated", "This account is gone.", status=401)


def _reason(one: Standing, num_requests: int) -> str:
    """Why so many requests do not fit; "" when they do.

    As long as anything is left of the tokens one more is let in, however long it may get: else a quota that is shorter
    than the longest answer would let in nothing. So the last one may go past the limit, by its own length.
    """
    limit = one.limit
    whose = f"the quota of {OF_WHOM[limit.counts_for]}"
    if limit.max_requests is not None and one.requests + num_requests > limit.max_requests:
        return f"{one.requests} of {limit.max_requests} requests in {limit.window_s} s are used: {whose}."
    if limit.max_tokens is None or one.tokens + one.held < limit.max_tokens:
        return ""
    if one.tokens >= limit.max_tokens:
        return f"{one.tokens} of {limit.max_tokens} tokens in {limit.window_s} s are used: {whose}."
    return (
        f"{one.tokens} of {limit.max_tokens} tokens in {limit.window_s} s are used and {one.held} are held by "
        f"answers in the making: {whose}. Wait for one to end."
    )


def _is_held_only(one: Standing, num_requests: int) -> bool:
    """Whether there is room again as soon as answers in the making end with less than they hold."""
    limit = one.limit
    fits = limit.max_requests is None or one.requests + num_requests <= limit.max_requests
    return fits and limit.max_tokens is not None and one.tokens < limit.max_tokens
