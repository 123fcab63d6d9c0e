"""What the doors for people share: their pages, and where people go on to.

Templates: accounts/signin.html and accounts/signup.html, with `form`, `next`, `guests`, `signup` and `provider`.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from chatsite.accounts.forms import SignInForm, SignUpForm
from chatsite.accounts.oidc import is_configured


def page(
    request: HttpRequest, template: str, form: SignInForm | SignUpForm, status: int = 200, notice: str = ""
) -> HttpResponse:
    """A page with a form, and beside it the other ways in."""
    _focus(form)
    context = {
        "form": form,
        "next": target(request),
        "guests": settings.CONFIG.guests,
        "signup": settings.CONFIG.signup,
        "provider": settings.CONFIG.oidc_name if is_configured() else "",
        "has_left_provider": is_configured() and request.GET.get("left") == "provider",
        "notice": notice,
    }
    return render(request, template, context, status=status)


def _focus(form: SignInForm | SignUpForm) -> None:
    """Puts whoever was refused where it was, else at the first field."""
    first = next((name for name in form.fields if name in form.errors), next(iter(form.fields)))
    for name, field in form.fields.items():
        field.widget.attrs["autofocus"] = name == first


def sign_in_page(request: HttpRequest, notice: str, status: int) -> HttpResponse:
    """The sign-in page with a word on why it is shown."""
    return page(request, "accounts/signin.html", SignInForm(request), status, notice)


def target(request: HttpRequest) -> str:
    """Where to go on: `next` when it stays on this site, else the chat."""
    wished = request.POST.get("next") or request.GET.get("next") or settings.LOGIN_REDIRECT_URL
    hosts = {request.get_host()}
    is_ours = url_has_allowed_host_and_scheme(wished, allowed_hosts=hosts, require_https=request.is_secure())
    return wished if is_ours else settings.LOGIN_REDIRECT_URL
