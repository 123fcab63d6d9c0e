"""Who may ask: from a signed-in user or an API key to the `Caller` that the flow knows.

Knows rows; does not know how somebody signed in.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol
from uuid import UUID

from django.utils import timezone

from chatsite.accounts.models import User
from chatsite.chat.turn import Caller


class Account(Protocol):
    """What tells whether somebody may come in."""

    @property
    def is_active(self) -> bool: ...
    @property
    def guest_until(self) -> datetime | None: ...


class Key(Protocol):
    """What a key tells of who asks."""

    @property
    def pk(self) -> UUID: ...
    @property
    def user_id(self) -> int: ...
    @property
    def tenant_id(self) -> int: ...


def is_welcome(user: Account) -> bool:
    """False for accounts that were switched off and for guests whose seven days are over."""
    return user.is_active and (user.guest_until is None or user.guest_until > timezone.now())


def is_signed_in_staff(caller: Caller) -> bool:
    """A key is no substitute, whoever's it is: its scopes say nothing of what staff may do."""
    if caller.api_key is not None:
        return False
    return User.objects.filter(pk=caller.user_id, is_staff=True, is_active=True).exists()


def caller_of_user(user: User) -> Caller:
    """The caller behind a session."""
    return Caller(user_id=user.pk, tenant=str(user.tenant_id), is_guest=user.is_guest)


def caller_of_key(key: Key) -> Caller:
    """The caller behind an API key; the key's business line counts, not its user's."""
    return Caller(user_id=key.user_id, tenant=str(key.tenant_id), api_key=key.pk, is_guest=False)
