"""What the routes of the chat's API share: who asks. Knows HTTP requests as django-ninja hands them over."""

from __future__ import annotations

from django.http import HttpRequest

from chatsite.chat.turn import Caller


def caller_of(request: HttpRequest) -> Caller:
    """Whom the authentication of the route let in."""
    caller = request.auth  # type: ignore[attr-defined]
    assert isinstance(caller, Caller)
    return caller
