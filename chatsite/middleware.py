"""What happens to every request and response, whatever the view: an id, safe headers, errors in the door's own form.

Asynchronous throughout: a synchronous link in the chain would hold one thread per open request, and would collect
streams before they leave. Knows no view.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import uuid4

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import async_only_middleware

from chatsite.v1.errors import ApiError, response_of

GetResponse = Callable[[HttpRequest], Awaitable[HttpResponseBase]]

JSON_DOORS = ("/v1", "/api")
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()"
CODES = {
    400: ("invalid_request", "The request cannot be understood."),
    403: ("forbidden", "This is not allowed."),
    404: ("unknown_url", "There is nothing at this URL."),
    405: ("method_not_allowed", "This URL does not take that method."),
    413: ("body_too_large", "The request is too large."),
}


@async_only_middleware
def proxy_headers(get_response: GetResponse) -> GetResponse:
    """Leaves of scheme and host what the trusted proxy itself wrote: what a client sent before stands before it."""

    async def middleware(request: HttpRequest) -> HttpResponseBase:
        if settings.CONFIG.trust_proxy:
            for name in ("HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST"):
                if name in request.META:
                    request.META[name] = request.META[name].rpartition(",")[2].strip()
        return await get_response(request)

    return middleware


@async_only_middleware
def site_headers(get_response: GetResponse) -> GetResponse:
    """Gives each request an id, and each response the headers that Django has no setting for."""

    async def middleware(request: HttpRequest) -> HttpResponseBase:
        request.request_id = new_request_id()  # type: ignore[attr-defined]
        response = await get_response(request)
        response["x-request-id"] = request.request_id  # type: ignore[attr-defined]
        response.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        # Answers are private unless a view says otherwise; a shared cache or the back button must not show them.
        response.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def new_request_id() -> str:
    return f"req_{uuid4().hex}"


@async_only_middleware
def json_errors(get_response: GetResponse) -> GetResponse:
    """Under the JSON doors even an error that no view has seen is an error object, never a page."""

    async def middleware(request: HttpRequest) -> HttpResponseBase:
        response = await get_response(request)
        is_page = response.status_code >= 400 and not response.headers.get("Content-Type", "").startswith(
            ("application/json", "text/event-stream")
        )
        if is_page and is_json_door(request.path_info):
            return _as_error_object(response)
        return response

    return middleware


def is_json_door(path: str) -> bool:
    return any(path == door or path.startswith(f"{door}/") for door in JSON_DOORS)


def _as_error_object(page: HttpResponseBase) -> HttpResponse:
    code, message = CODES.get(page.status_code, ("internal_error", "The server made a mistake."))
    response = response_of(ApiError(page.status_code, code, message))
    if "Allow" in page.headers:
        response["Allow"] = page.headers["Allow"]
    return response
