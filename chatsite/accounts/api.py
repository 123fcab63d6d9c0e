"""`/api/keys`: a person's own keys, in a session only: a key must not make or end keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Router, Schema, Status

from chatsite.accounts import keys, rotation
from chatsite.accounts.auth import SESSION, caller_of
from chatsite.accounts.models import ApiKey, User
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest, NotFound, RequestError
from chatsite.json_types import AS_NUMBER

MAX_KEYS = 50
DAY_S = 86_400
MAX_GRACE_S = int(rotation.MAX_GRACE.total_seconds())

# The scopes in which people may make keys for themselves; administration is given out by staff.
OwnScope = Literal["chat", "embeddings", "usage"]
OWN_SCOPES = frozenset(get_args(OwnScope))
DEFAULT_SCOPES: list[OwnScope] = ["chat", "embeddings"]


class TooManyKeys(RequestError):
    code = "too_many_keys"
    status = 409


class NotRotatable(RequestError):
    code = "not_rotatable"
    status = 409


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
    replaced_by_id: UUID | None = Field(description="The key that took this one's place.")


class NewKey(KeyOut):
    """The only answer that ever holds a secret."""

    key: str


class KeyIn(Schema):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[OwnScope], Field(min_length=1)] = Field(DEFAULT_SCOPES)
    days: Annotated[int, Field(ge=1, le=36_500), AS_NUMBER] | None = None


class RotationIn(Schema):
    grace_s: Annotated[int, Field(ge=0, le=MAX_GRACE_S), AS_NUMBER] = Field(
        DAY_S, description="How long the old key goes on, so that clients can be changed over."
    )
    days: Annotated[int, Field(ge=1, le=36_500), AS_NUMBER] | None = Field(
        None, description="Days until the new key expires; without it it ends when the old one would have."
    )


router = Router(tags=["account"])


@router.get("/keys", response={200: list[KeyOut]}, auth=SESSION, url_name="keys")
async def list_keys(request: HttpRequest) -> list[ApiKey]:
    return await run_in_db(_keys_of, caller_of(request).user_id)


@router.post("/keys", response={201: NewKey}, auth=SESSION, url_name="keys")
async def make_key(request: HttpRequest, payload: KeyIn) -> Status[dict[str, Any]]:
    """The answer is the only place where the key can be read."""
    key, secret = await run_in_db(_make_key, caller_of(request), payload)
    return Status(201, KeyOut.from_orm(key).dict() | {"key": secret})


@router.post("/keys/{key_id}/rotate", response={201: NewKey}, auth=SESSION, url_name="key-rotate")
async def rotate_key(request: HttpRequest, key_id: UUID, payload: RotationIn) -> Status[dict[str, Any]]:
    """A new key takes the place of this one, with the same scopes, business line and limits.

    The old one goes on for a grace, at most seven days. The answer is the only place where the new one can be read.
    """
    key, secret = await run_in_db(_rotate_key, caller_of(request), key_id, payload)
    return Status(201, KeyOut.from_orm(key).dict() | {"key": secret})


@router.delete("/keys/{key_id}", response={204: None}, auth=SESSION, url_name="key")
async def revoke_key(request: HttpRequest, key_id: UUID) -> Status[None]:
    """The key stops working at once; its row stays for the ledger."""
    if not await run_in_db(keys.revoke, caller_of(request).user_id, key_id):
        raise NotFound("There is no such key.")
    return Status(204, None)


def _keys_of(user_id: int) -> list[ApiKey]:
    return list(ApiKey.objects.filter(user_id=user_id).order_by("-created_at")[: 2 * MAX_KEYS])


def _make_key(caller: Caller, payload: KeyIn) -> tuple[ApiKey, str]:
    if caller.is_guest:
        raise InvalidRequest("Guests have no API keys; make an account first.")
    _check_number(caller.user_id)
    try:
        return keys.create_key(
            User.objects.get(pk=caller.user_id), payload.name, payload.scopes, _in_days(payload.days)
        )
    except ValueError as error:
        raise InvalidRequest(f"{error}.") from error


def _rotate_key(caller: Caller, key_id: UUID, payload: RotationIn) -> tuple[ApiKey, str]:
    mine = ApiKey.objects.filter(pk=key_id, user_id=caller.user_id).first()
    if mine is None:
        raise NotFound("There is no such key.")
    if payload.days is not None and not set(mine.scopes) <= OWN_SCOPES:
        raise InvalidRequest("How long a key with scopes that staff give lasts is for staff to say.")
    _check_number(caller.user_id)
    try:
        return rotation.rotate(mine.pk, timedelta(seconds=payload.grace_s), _in_days(payload.days))
    except rotation.NotRotatable as error:
        raise NotRotatable(f"{error}.") from error


def _check_number(user_id: int) -> None:
    if keys.usable(ApiKey.objects.filter(user_id=user_id)).count() >= MAX_KEYS:
        raise TooManyKeys(f"There are {MAX_KEYS} keys already; revoke one first.")


def _in_days(days: int | None) -> datetime | None:
    return None if days is None else timezone.now() + timedelta(days=days)
