"""A key's place taken by a new one: same user, business line, scopes and quotas; the old one goes on for a grace.

The new key is as usable as the old one and no longer, unless the caller may give a new life. Knows rows, no HTTP.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chatsite.accounts.keys import create_key, usable
from chatsite.accounts.models import ApiKey, Quota, QuotaUse, User
from chatsite.accounts.quotas.rules import subject

MAX_GRACE = timedelta(days=7)


class NotRotatable(ValueError):
    """The key has ended, or was replaced already."""


@transaction.atomic
def rotate(key_id: UUID, grace: timedelta, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
    """The new key and its secret. Raises NotRotatable.

    Without `expires_at` the new key ends when the old one would have: rotating gives nobody more than was given.
    """
    assert timedelta() <= grace <= MAX_GRACE
    # First of all locks, as with whoever asks: counters change hands between two questions, not within one.
    list(User.objects.select_for_update(of=("self",), no_key=True).filter(api_keys=key_id).values("pk"))
    locked = usable(ApiKey.objects.select_for_update(of=("self",))).select_related("user")
    old = locked.filter(pk=key_id).first()
    if old is None:
        raise NotRotatable("The key has ended; make a new one")
    if old.replaced_by_id is not None:
        raise NotRotatable("The key was replaced already; rotate the one that took its place")
    new, secret = create_key(old.user, old.name, old.scopes, expires_at or old.expires_at)
    new.tenant_id = old.tenant_id  # of the key, which need not be its user's
    new.save(update_fields=["tenant"])
    _hand_on_limits(old, new)
    old.replaced_by = new
    _let_end(old, grace)
    return new, secret


def _let_end(old: ApiKey, grace: timedelta) -> None:
    now = timezone.now()
    if grace:
        old.expires_at = min(old.expires_at or now + grace, now + grace)
    else:
        old.revoked_at = now
    old.save(update_fields=["replaced_by", "revoked_at", "expires_at"])


def _hand_on_limits(old: ApiKey, new: ApiKey) -> None:
    """Both are counted as the new one from now on (`quotas.rules`): two keys must not be twice the limit."""
    Quota.objects.filter(api_key=old).update(api_key=new)
    QuotaUse.objects.filter(subject=subject("key", old.pk)).update(subject=subject("key", new.pk))
