"""`GET /api/quota`: how the caller stands with each quota that is in force.

A door: reads standings and shows them. Knows no counter.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Router, Schema
from pydantic import ConfigDict

from chatsite.accounts.auth import SessionOrKey, caller_of
from chatsite.accounts.quotas.standing import Standing, standings_of
from chatsite.db import run_in_db

EXAMPLE: dict[str, Any] = {
    "counts_for": "user",
    "window_s": 86400,
    "resets_at": "2026-11-30T00:00:00Z",
    "is_warning": True,
    "requests": {"limit": 500, "used": 420, "left": 80},
    "tokens": {"limit": 1000000, "used": 300000, "reserved": 5000, "left": 695000},
}


class RequestsOut(Schema):
    limit: int
    used: int
    left: int


class TokensOut(RequestsOut):
    reserved: int = Field(description="Held by answers in the making; what they do not use comes back.")


class QuotaOut(Schema):
    """One quota in the window that runs now. A kind that is not limited is null."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    counts_for: Literal["tenant", "key", "user"] = Field(description="Whose use is counted.")
    window_s: int
    resets_at: datetime
    is_warning: bool = Field(description="At least 80 % of requests or tokens are used.")
    requests: RequestsOut | None
    tokens: TokensOut | None


router = Router(tags=["account"])


@router.get(
    "/quota",
    response={200: list[QuotaOut]},
    auth=SessionOrKey("chat", "embeddings", "usage"),
    url_name="quota",
)
async def quota(request: HttpRequest) -> list[QuotaOut]:
    """The quotas in force for the caller, that of which most is used first."""
    standings = await run_in_db(standings_of, caller_of(request))
    return [_shown(one) for one in standings]


def _shown(one: Standing) -> QuotaOut:
    limit = one.limit
    requests, tokens = None, None
    if limit.max_requests is not None and one.requests_left is not None:
        requests = RequestsOut(limit=limit.max_requests, used=one.requests, left=one.requests_left)
    if limit.max_tokens is not None and one.tokens_left is not None:
        tokens = TokensOut(limit=limit.max_tokens, used=one.tokens, left=one.tokens_left, reserved=one.held)
    return QuotaOut(
        counts_for=limit.counts_for,
        window_s=limit.window_s,
        resets_at=one.resets_at,
        is_warning=one.is_warning,
        requests=requests,
        tokens=tokens,
    )
