"""What every `/v1` view shares: the key, the method, and errors in one shape.

Knows no resource. Cookies are never read here, so there is nothing for CSRF to protect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from chatsite import metrics
from chatsite.accounts import keys
from chatsite.accounts.grants import Grant, watch
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import ReplyRefused
from chatsite.v1.errors import ApiError, response_of, told_of

# The view gets the request, its caller, and whatever the path carries.
View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def endpoint(method: str, scopes: Collection[str]) -> Callable[[View], View]:
    """A view for `method` and keys with one of `scopes`; everything it raises becomes an error object."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        async def guarded(request: HttpRequest, **path: str) -> HttpResponseBase:
            try:
                caller = await _caller(request, scopes)
                if request.method != method:
                    return _method_not_allowed(method)
                async with watch.held(Grant.of_key(caller)):
                    return await view(request, caller, **path)
            except Exception as error:
                return response_of(_told(error, request))

        return guarded

    return decorate


@csrf_exempt
async def unknown_path(request: HttpRequest, **path: str) -> HttpResponse:
    """The answer for every path under /v1 that is not served."""
    return response_of(ApiError(404, "unknown_url", f"Unknown request URL: {request.method} {request.path}."))


async def _caller(request: HttpRequest, scopes: Collection[str]) -> Caller:
    return await run_in_db(keys.authenticate, request.headers.get("Authorization"), scopes)


def _method_not_allowed(method: str) -> HttpResponse:
    response = response_of(ApiError(405, "method_not_allowed", f"This URL takes {method} only."))
    response["Allow"] = method
    return response


def _told(error: Exception, request: HttpRequest) -> ApiError:
    """What the client is told about `error`; refusals are counted."""
    told = told_of(error, ascii(request.path))
    if told.status != 500 and not isinstance(error, ReplyRefused):  # the flow counts its own
        metrics.observe_refusal(told.code)
    return told
