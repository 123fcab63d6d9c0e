"""The doors for people: sign in, sign up, go on as a guest, sign out. Plain forms, POST with CSRF.

What their pages share is in `doors`.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login, logout
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from chatsite.accounts import brake
from chatsite.accounts.callers import is_welcome
from chatsite.accounts.doors import page, sign_in_page, target
from chatsite.accounts.forms import SignInForm, SignUpForm
from chatsite.accounts.guests import BACKEND, enter_as_guest
from chatsite.accounts.models import User
from chatsite.accounts.oidc import CAME_BY

# Every guest and every new account is a row; one address gets a bounded number of them per window.
GUEST, NEW_ACCOUNT = "\x00guest", "\x00signup"


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if _is_in(request) and request.method != "POST":
        return _go_on(request)
    form = SignInForm(request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        user = form.get_user()
        login(request, user)
        response = _go_on(request)
        brake.remember_browser(response, user.get_username())
        return response
    return page(request, "accounts/signin.html", form)


@sensitive_post_parameters("password1", "password2")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    if not settings.CONFIG.signup:
        raise Http404
    form = SignUpForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        address = brake.client_address(request)
        if not brake.may_enter_anew(address, NEW_ACCOUNT):
            form.add_error(
                None, _("Too many new accounts from your address. Wait a few minutes and try again.")
            )
            return page(request, "accounts/signup.html", form, status=429)
        brake.count_new(address, NEW_ACCOUNT)
        login(request, form.save(), backend=BACKEND)
        return _go_on(request)
    return page(request, "accounts/signup.html", form)


@require_POST
def guest(request: HttpRequest) -> HttpResponse:
    if not settings.CONFIG.guests:
        raise Http404
    if not _is_in(request):
        address = brake.client_address(request)
        if not brake.may_enter_anew(address, GUEST):
            notice = _("Too many guests from your address. Wait a few minutes and try again.")
            return sign_in_page(request, notice, status=429)
        brake.count_new(address, GUEST)
        enter_as_guest(request)
    return _go_on(request)


def _is_in(request: HttpRequest) -> bool:
    """Signed in as somebody who may be here: a guest whose days are over gets the form, not a loop of redirects."""
    return isinstance(request.user, User) and is_welcome(request.user)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Those who came by a provider are shown the way out there, too: it may be a computer that others use."""
    came_by_provider = request.session.get(CAME_BY, False)
    logout(request)
    query = "?left=provider" if came_by_provider else ""
    return HttpResponseRedirect(reverse("signin") + query)


def _go_on(request: HttpRequest) -> HttpResponse:
    # Not `redirect()`, which takes a word such as "signup" for the name of a view and fails for other words.
    return HttpResponseRedirect(target(request))
