"""`/api/keys` and `/api/usage`: a person's own keys and what was used.

Keys are managed in a session only: a key must not make or end keys. Usage can also be read with the scope `usage`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Router, Schema, Status

from chatsite.accounts import keys
from chatsite.accounts.auth import SessionOrKey
from chatsite.accounts.models import ApiKey, UsageRecord, User
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest, NotFound

MAX_KEYS = 50
MAX_DAYS = 90


class KeyOut(Schema):
    """A key without its secret."""

    id: UUID
    name: str
    prefix: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewKey(KeyOut):
    """The only answer that ever holds a secret."""

    key: str


class KeyIn(Schema):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: list[str] = Field(default_factory=lambda: ["chat", "embeddings"])
    days: Annotated[int, Field(ge=1, le=36_500)] | None = None


class DayOut(Schema):
    """What one day used, by where the answers came from."""

    day: str
    answers: int
    cache_hits: int
    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int


# The scopes in which people may make keys for themselves; administration is given out by staff.
OWN_SCOPES = frozenset({ApiKey.Scope.CHAT.value, ApiKey.Scope.EMBEDDINGS.value, ApiKey.Scope.USAGE.value})
SESSION = SessionOrKey()

router = Router(tags=["account"])


@router.get("/keys", response=list[KeyOut], auth=SESSION, url_name="keys")
async def list_keys(request: HttpRequest) -> list[ApiKey]:
    return await run_in_db(_keys_of, _caller(request).user_id)


@router.post("/keys", response={201: NewKey}, auth=SESSION, url_name="keys")
async def make_key(request: HttpRequest, payload: KeyIn) -> Status[dict[str, Any]]:
    """The answer is the only place where the key can be read."""
    key, secret = await run_in_db(_make_key, _caller(request), payload)
    return Status(201, KeyOut.from_orm(key).dict() | {"key": secret})


@router.delete("/keys/{key_id}", response={204: None}, auth=SESSION, url_name="key")
async def revoke_key(request: HttpRequest, key_id: UUID) -> Status[None]:
    """The key stops working at once; its row stays for the ledger."""
    if not await run_in_db(keys.revoke, _caller(request).user_id, key_id):
        raise NotFound("There is no such key.")
    return Status(204, None)


@router.get("/usage", response=list[DayOut], auth=SessionOrKey("usage"), url_name="usage")
async def usage(
    request: HttpRequest, days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 30
) -> list[dict[str, Any]]:
    """Own usage by day (UTC), newest first."""
    return await run_in_db(_usage_of, _caller(request).user_id, days)


def _caller(request: HttpRequest) -> Caller:
    caller: Caller = request.auth  # type: ignore[attr-defined]
    return caller


def _keys_of(user_id: int) -> list[ApiKey]:
    return list(ApiKey.objects.filter(user_id=user_id).order_by("-created_at")[: 2 * MAX_KEYS])


def _make_key(caller: Caller, payload: KeyIn) -> tuple[ApiKey, str]:
    if caller.is_guest:
        raise InvalidRequest("Guests have no API keys; make an account first.")
    if not set(payload.scopes) <= OWN_SCOPES:
        raise InvalidRequest(f"scopes must be some of: {', '.join(sorted(OWN_SCOPES))}.")
    if ApiKey.objects.filter(user_id=caller.user_id, revoked_at__isnull=True).count() >= MAX_KEYS:
        raise InvalidRequest(f"There are {MAX_KEYS} keys already; revoke one first.")
    expires_at = None if payload.days is None else timezone.now() + timedelta(days=payload.days)
    try:
        return keys.create_key(User.objects.get(pk=caller.user_id), payload.name, payload.scopes, expires_at)
    except ValueError as error:
        raise InvalidRequest(f"{error}.") from error


def _usage_of(user_id: int, days: int) -> list[dict[str, Any]]:
    recent = UsageRecord.objects.filter(
        user_id=user_id, created_at__gte=timezone.now() - timedelta(days=days)
    )
    by_day = recent.annotate(on=TruncDate("created_at", tzinfo=UTC)).values("on").order_by("-on")
    sums = by_day.annotate(
        answers=Count("pk"),
        cache_hits=Count("pk", filter=~Q(origin="model")),
        prompt=Sum("prompt_tokens"),
        reused=Sum("reused_tokens"),
        generated=Sum("generated_tokens"),
    )
    return [
        {
            "day": row["on"].isoformat(),
            "answers": row["answers"],
            "cache_hits": row["cache_hits"],
            "prompt_tokens": row["prompt"],
            "reused_tokens": row["reused"],
            "generated_tokens": row["generated"],
        }
        for row in sums
    ]
