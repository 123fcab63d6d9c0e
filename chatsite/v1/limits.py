"""How the caller's quotas stand, as headers of answers and refusals: OpenAI's names and forms, and a warning of ours.

Knows standings and names; knows no view.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from chatsite.accounts.quotas.standing import Standing, tightest

X_WARNING = "X-Quota-Warning"


def limit_headers(standings: Sequence[Standing]) -> dict[str, str]:
    """Of the tightest quota of requests and the tightest of tokens; none where no quota is in force."""
    headers: dict[str, str] = {}
    now = datetime.now(UTC)
    for kind in ("requests", "tokens"):
        if one := tightest(standings, kind):
            headers[f"x-ratelimit-limit-{kind}"] = str(getattr(one.limit, f"max_{kind}"))
            headers[f"x-ratelimit-remaining-{kind}"] = str(getattr(one, f"{kind}_left"))
            headers[f"x-ratelimit-reset-{kind}"] = duration((one.resets_at - now).total_seconds())
    if warnings := [_warning(one) for one in standings if one.is_warning]:
        headers[X_WARNING] = ", ".join(warnings)
    return headers


def duration(seconds: float) -> str:
    """As OpenAI writes it: 1h2m3s, 6m0s, 59s, 120ms."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest}s"
    if minutes or hours:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


def _warning(one: Standing) -> str:
    limit = one.limit
    return (
        f"{round(100 * one.share)}% of the {limit.counts_for} quota per {limit.window_s}s, "
        f"resets {one.resets_at:%Y-%m-%dT%H:%M:%SZ}"
    )
