"""Who makes a request to /api: a key by its header, or a person by session and CSRF token.

A request with an Authorization header is a key's and never reads cookies. Knows HTTP requests; used by django-ninja.
"""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth import get_user
from django.http import HttpRequest
from ninja.utils import check_csrf

from chatsite.accounts import keys
from chatsite.accounts.callers import caller_of_user, is_welcome
from chatsite.accounts.grants import Grant
from chatsite.accounts.keys import KeyRefused
from chatsite.accounts.models import User
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import RequestError


class CsrfFailed(RequestError):
    code = "csrf_failed"
    status = 403


class SessionOrKey:
    """Authentication of an operation: a session, or a key with one of `scopes` (none given: sessions only).

    Views that stream watch `request.grant`.
    """

    csrf = True  # tells the docs page to send the token

    def __init__(self, *scopes: str) -> None:
        self.scopes: Collection[str] = scopes

    async def __call__(self, request: HttpRequest) -> Caller | None:
        header = request.headers.get("Authorization")
        if header is not None:
            caller = await self._by_key(header)
            request.grant = Grant.of_key(caller)  # type: ignore[attr-defined]
            return caller
        # Not `request.auser()`: its connection would stay with the request, for as long as an answer is streamed.
        user = await run_in_db(get_user, request)
        if not isinstance(user, User) or not is_welcome(user):
            return None
        if check_csrf(request) is not None:
            raise CsrfFailed("The CSRF token is missing or wrong; reload the page.")
        request.grant = Grant.of_session(user, request.session.session_key or "")  # type: ignore[attr-defined]
        return caller_of_user(user)

    async def _by_key(self, header: str) -> Caller:
        caller = await run_in_db(keys.authenticate, header, self.scopes or keys.ANY_SCOPE)
        if not self.scopes:
            raise KeyRefused("session_required", "This needs a signed-in person, not an API key.", status=403)
        return caller


# For what a key must not do, whatever its scopes.
SESSION = SessionOrKey()


def caller_of(request: HttpRequest) -> Caller:
    """Whom the authentication of the route let in."""
    caller = request.auth  # type: ignore[attr-defined]
    assert isinstance(caller, Caller)
    return caller
