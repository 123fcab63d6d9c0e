"""How far somebody is with their quotas: used, held, left, and whether it is time for a warning.

Plain values and one read of the counters. Knows no door; `v1.limits` makes headers of these, `quotas.api` JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from chatsite.accounts.models import QuotaUse
from chatsite.accounts.quotas.rules import Limit, in_force
from chatsite.chat.turn import Caller

WARNING_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Standing:
    """A quota with its counter. `held` tokens belong to answers in the making and are settled at their end."""

    limit: Limit
    requests: int = 0
    tokens: int = 0
    held: int = 0

    @property
    def requests_left(self) -> int | None:
        return None if self.limit.max_requests is None else max(0, self.limit.max_requests - self.requests)

    @property
    def tokens_left(self) -> int | None:
        if self.limit.max_tokens is None:
            return None
        return max(0, self.limit.max_tokens - self.tokens - self.held)

    @property
    def share(self) -> float:
        """How much of the quota is used: the larger one of both kinds. What is only held may come back."""
        shares = [
            used / limit if limit else 1.0
            for used, limit in (
                (self.requests, self.limit.max_requests),
                (self.tokens, self.limit.max_tokens),
            )
            if limit is not None
        ]
        return max(shares)

    @property
    def is_warning(self) -> bool:
        return self.share >= WARNING_SHARE

    @property
    def resets_at(self) -> datetime:
        return self.limit.resets_at


def standings_of(caller: Caller) -> list[Standing]:
    """Where the caller stands now, the quota that is used most first."""
    limits = in_force(caller)
    counters = {
        (use.subject, use.window_s, use.window_start): use
        for use in QuotaUse.objects.filter(subject__in={limit.subject for limit in limits})
    }
    standings = [
        standing(limit, counters.get((limit.subject, limit.window_s, limit.starts_at))) for limit in limits
    ]
    return sorted(standings, key=lambda one: one.share, reverse=True)


def standing(limit: Limit, use: QuotaUse | None) -> Standing:
    """A counter that does not stand yet has counted nothing."""
    return Standing(limit) if use is None else Standing(limit, use.requests, use.tokens, use.reserved_tokens)


def tightest(standings: Sequence[Standing], kind: str) -> Standing | None:
    """The one of which least is left of `kind`, requests or tokens; among equals the one that resets last."""
    bound = [(left, one) for one in standings if (left := getattr(one, f"{kind}_left")) is not None]
    if not bound:
        return None
    return min(bound, key=lambda pair: (pair[0], -pair[1].resets_at.timestamp()))[1]
