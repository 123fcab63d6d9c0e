"""What every `/v1` view shares: the key, the method, and errors in one shape.

Knows no resource. Cookies are never read here, so there is nothing for CSRF to protect.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine
from functools import wraps
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from chatsite import metrics
from chatsite.accounts import keys
from chatsite.accounts.grants import Grant, watch
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import ReplyRefused, SiteError, StorageUnavailable
from chatsite.v1.errors import ApiError, from_engine, from_site, response_of
from inference.errors import EngineError

logger = logging.getLogger(__name__)

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
    """What the client is told about `error`; refusals are counted, mistakes of ours are logged."""
    match error:
        case ApiError():
            told = error
        case SiteError():
            told = from_site(error)
        case EngineError():
            told = from_engine(error)
        case OperationalError() | InterfaceError():
            logger.warning("a request met a database that is away: %s", error)
            told = from_site(StorageUnavailable("The server cannot store or read anything now."))
        case _:
            logger.error("unexpected error under %s", ascii(request.path), exc_info=error)
            return ApiError(500, "internal_error", "The server made a mistake.")
    if not isinstance(error, ReplyRefused):  # the flow counts its own
        metrics.observe_refusal(told.code)
    return told
