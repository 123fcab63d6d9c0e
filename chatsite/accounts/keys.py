"""API keys: made, shown once, checked. What is stored is a prefix to find the row and a SHA-256 to compare.

The keys are 256 random bits, so a plain hash is enough: there is nothing to guess slowly. Knows no HTTP beyond the
`Authorization` header's text.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from chatsite import statements
from chatsite.accounts.callers import caller_of_key, is_welcome
from chatsite.accounts.models import ApiKey, User
from chatsite.chat.turn import Caller
from chatsite.errors import SiteError

MARK = "rill_"
PREFIX_CHARS = len(MARK) + 8
FORM = re.compile(re.escape(MARK) + r"[A-Za-z0-9_-]{43}")  # 32 bytes in unpadded base64
FIND = """
SELECT key.id, key.user_id, key.tenant_id, key.sha256, key.scopes, key.expires_at, key.revoked_at, key.last_used_at,
       owner.is_active, owner.guest_until
  FROM accounts_apikey key JOIN accounts_user owner ON owner.id = key.user_id WHERE key.prefix = %s
"""
ANY_SCOPE = tuple(ApiKey.Scope.values)
# The stamp is for people who tidy up; a write per request would make it the busiest row of the database.
STAMP_EVERY = timedelta(minutes=1)


class KeyRefused(SiteError):
    """The header names no usable key: 401, or 403 for a key without the scope."""

    def __init__(self, code: str, message: str, status: int = 401) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


@dataclass(frozen=True, slots=True)
class Found:
    """A key as it is looked at with each request, and whether its owner is welcome."""

    pk: UUID
    user_id: int
    tenant_id: int
    sha256: str
    scopes: Sequence[str]
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    is_active: bool
    guest_until: datetime | None


def create_key(
    user: User, name: str, scopes: Sequence[str], expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """A new key of `user` and its secret, which nobody can read again. Raises ValueError for unknown scopes."""
    wanted = list(dict.fromkeys(scopes))
    if not wanted or not set(wanted) <= set(ApiKey.Scope.values):
        raise ValueError(f"scopes must be some of: {', '.join(ApiKey.Scope.values)}")
    secret = MARK + secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        user=user,
        tenant_id=user.tenant_id,
        name=name,
        prefix=secret[:PREFIX_CHARS],
        sha256=_digest(secret),
        scopes=wanted,
        expires_at=expires_at,
    )
    return key, secret


def authenticate(header: str | None, scopes: Collection[str]) -> Caller:
    """The caller whose key the Authorization header carries; the key must have one of `scopes`. Raises KeyRefused."""
    key = _find(_secret_in(header))
    now = timezone.now()
    if key.revoked_at is not None:
        raise KeyRefused("key_revoked", "This API key was revoked.")
    if key.expires_at is not None and key.expires_at <= now:
        raise KeyRefused("key_expired", "This API key has expired.")
    if not is_welcome(key):
        raise KeyRefused("account_disabled", "The account of this API key is switched off.")
    if not set(scopes) & set(key.scopes):
        raise KeyRefused("missing_scope", f"This API key lacks the scope: {' or '.join(scopes)}.", status=403)
    _stamp(key, now)
    return caller_of_key(key)


def usable(rows: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    """Those of `rows` that are neither revoked nor expired."""
    lasting = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    return rows.filter(lasting, revoked_at__isnull=True)


def revoke(user_id: int, key_id: UUID) -> bool:
    """True when the key is the user's; it stops working at once."""
    mine = ApiKey.objects.filter(pk=key_id, user_id=user_id)
    mine.filter(revoked_at__isnull=True).update(revoked_at=timezone.now())
    return mine.exists()


def _secret_in(header: str | None) -> str:
    if not header:
        raise KeyRefused("missing_api_key", "No API key given: send 'Authorization: Bearer KEY'.")
    kind, _, secret = header.strip().partition(" ")
    secret = secret.strip()
    if kind.lower() != "bearer" or not FORM.fullmatch(secret):
        raise KeyRefused("invalid_api_key", "The API key is not valid.")
    return secret


def _find(secret: str) -> Found:
    digest = _digest(secret)
    for row in statements.every(FIND, [secret[:PREFIX_CHARS]]):
        key = Found(*row)
        if hmac.compare_digest(key.sha256, digest):
            return key
    raise KeyRefused("invalid_api_key", "The API key is not valid.")


def _stamp(key: Found, now: datetime) -> None:
    due = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - STAMP_EVERY)
    if key.last_used_at is None or key.last_used_at < now - STAMP_EVERY:
        ApiKey.objects.filter(due, pk=key.pk).update(last_used_at=now)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
