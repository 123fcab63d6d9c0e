"""`/keys`: the page of one's API keys. It carries words and no key; its script asks `/api/keys`."""

from __future__ import annotations

from csp.decorators import csp_update
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from chatsite.chat.views import TRUSTED_TYPES
from chatsite.static_files import modules_of


@require_safe
@login_required
@ensure_csrf_cookie
@csp_update(TRUSTED_TYPES)
def keys(request: HttpRequest) -> HttpResponse:
    """For signed-in people; guests read why they have none."""
    context = {"modules": modules_of("account/keys.js"), "site": request.build_absolute_uri("/v1")}
    return render(request, "accounts/keys.html", context)
