"""The doors of signing in by a provider: to it, back from it, and out of it.

What must be known again at the return travels in a signed cookie of ten minutes, so that passers-by leave no rows.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from types import ModuleType
from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from chatsite.accounts import doors
from chatsite.accounts.callers import is_welcome
from chatsite.accounts.guests import BACKEND
from chatsite.accounts.oidc import CAME_BY, is_configured, people

logger = logging.getLogger(__name__)

SALT = "chatsite.oidc"
LASTS_S = 600


@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Sends a browser to the provider."""
    provider = _provider()
    try:
        departure = provider.depart(_return_to(request))
    except provider.ProviderFailed as error:
        return _failed(request, error)
    response = HttpResponseRedirect(departure.url)
    kept = signing.dumps(asdict(departure) | {"next": doors.target(request)}, salt=SALT)
    response.set_cookie(
        settings.OIDC_COOKIE_NAME,
        kept,
        max_age=LASTS_S,
        httponly=True,
        samesite="Lax",  # the way back comes from another site
        secure=settings.SESSION_COOKIE_SECURE,
    )
    return response


@require_safe
@sensitive_variables()
def callback(request: HttpRequest) -> HttpResponse:
    """Where the provider sends people back to. It may take seconds, so the database is asked only behind it."""
    provider = _provider()
    try:
        kept = signing.loads(request.COOKIES.get(settings.OIDC_COOKIE_NAME, ""), salt=SALT, max_age=LASTS_S)
        going_on = kept.pop("next")
        claims = provider.arrived(request.GET.dict(), provider.Departure(**kept), _return_to(request))
        user = people.user_of(claims)
    except signing.BadSignature:
        return _failed(request, provider.ProviderFailed("nobody set out from this browser lately"))
    except provider.ProviderFailed as error:
        return _failed(request, error)
    except people.NotWelcome:
        notice = _("You have no account here. Ask whoever runs this site for one.")
        return _without_cookie(doors.sign_in_page(request, notice, status=403))
    if not is_welcome(user):
        notice = _("This account is switched off.")
        return _without_cookie(doors.sign_in_page(request, notice, status=403))
    login(request, user, backend=BACKEND)
    request.session[CAME_BY] = True
    return _without_cookie(HttpResponseRedirect(going_on))


@require_safe
def leave(request: HttpRequest) -> HttpResponse:
    """Sends a browser to the provider's own sign-out, where it has one."""
    provider = _provider()
    try:
        url = provider.way_out(request.build_absolute_uri(reverse("signin")))
    except provider.ProviderFailed as error:
        return _failed(request, error)
    return redirect(url or "signin")


def _provider() -> ModuleType:
    """What speaks to the provider, where there is one."""
    if not is_configured():
        raise Http404
    from chatsite.accounts.oidc import provider

    return provider


def _return_to(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("oidc-callback"))


def _failed(request: HttpRequest, error: Any) -> HttpResponse:
    logger.warning("signing in by the provider failed: %s", error)
    notice = _("Signing in at %(name)s did not work. Try it once more.") % {"name": settings.CONFIG.oidc_name}
    return _without_cookie(doors.sign_in_page(request, notice, status=400))


def _without_cookie(response: HttpResponse) -> HttpResponse:
    """One departure, one return."""
    response.delete_cookie(settings.OIDC_COOKIE_NAME, samesite="Lax")
    return response
