"""The public page of a shared snapshot: for whoever has the link, without a sign-in, read-only.

Drawn by the chat's own modules under the chat's own policy. Kept by no cache, found by no search engine, and its
address, which is its secret, is told to nobody by links on it.
"""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from chatsite.accounts import brake
from chatsite.chat import sharing
from chatsite.chat.models import ShareLink
from chatsite.chat.views import TRUSTED_TYPES
from chatsite.db import run_in_db
from chatsite.errors import NotFound

DOOR = "\x00shared"
# Nothing on the page asks anybody for anything, and there is no form.
NARROWER = {"connect-src": ["'none'"], "form-action": ["'none'"]}
HEADERS = {
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


@require_safe
async def shared(request: HttpRequest, secret: str) -> HttpResponse:
    """The snapshot; 404 for whatever is none, and 429 for an address that looks at very many."""
    link = await run_in_db(_looked_at, brake.client_address(request), secret)
    if link is None:
        response = render(request, "chat/too_many.html", status=429)
        response["Retry-After"] = str(int(brake.WINDOW.total_seconds()))
    else:
        response = render(request, "chat/shared.html", {"link": link})
    # django-csp's decorators are for sync views.
    response._csp_update = TRUSTED_TYPES  # type: ignore[attr-defined]
    response._csp_replace = NARROWER  # type: ignore[attr-defined]
    for name, value in HEADERS.items():
        response[name] = value
    return response


def _looked_at(address: str, secret: str) -> ShareLink | None:
    if not brake.may_look(address, DOOR):
        return None
    try:
        return sharing.seen_by(secret)
    except NotFound:
        raise Http404 from None
