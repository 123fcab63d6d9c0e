"""Guests: real user rows with a random name, seven days and no password.

Knows how a guest is made and when one is over; whether guests are allowed is a setting that the views ask.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.contrib.auth import login
from django.http import HttpRequest
from django.utils import timezone

from chatsite.accounts.models import User

LIFE = timedelta(days=7)
BACKEND = "django.contrib.auth.backends.ModelBackend"


def enter_as_guest(request: HttpRequest) -> User:
    """A new guest, signed in on this request; the session ends with the guest."""
    user = User.objects.create_user(
        f"guest-{secrets.token_hex(6)}", is_guest=True, guest_until=timezone.now() + LIFE
    )
    login(request, user, backend=BACKEND)
    request.session.set_expiry(LIFE)
    return user


def expired_guests(limit: int) -> list[User]:
    """Guests whose time is over; `chat.erasure.erase_user` removes them with everything of theirs."""
    return list(User.objects.filter(is_guest=True, guest_until__lt=timezone.now())[:limit])
