"""Who opened a socket: the user behind Django's session cookie, read without the thread all sync code shares.

Synchronous: callers go through `run_in_db`. Knows cookies and sessions, no frames.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from chatsite.accounts.callers import is_welcome
from chatsite.accounts.models import User


def session_key(scope: dict[str, Any]) -> str:
    """The session cookie of a connection; "" without one."""
    for name, value in scope.get("headers", []):
        if name == b"cookie":
            try:
                cookie = SimpleCookie(value.decode("latin-1")).get(settings.SESSION_COOKIE_NAME)
            except CookieError:
                return ""
            return cookie.value if cookie is not None else ""
    return ""


def user_of_session(key: str, *, renews: bool = True) -> User | None:
    """The user who is signed in with this session now; None when nobody is, or not any more.

    `renews` is False where nobody did anything: a page that is only open does not keep its session.
    """
    if not key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key=key, renews=renews)
    user = get_user(request)
    return user if isinstance(user, User) and is_welcome(user) else None
