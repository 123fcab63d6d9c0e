"""The site's own JSON API under /api: one object, its routers, and its errors in the same shape as /v1.

Handlers ask `chatsite.accounts.auth.caller_of` who calls. The docs are for signed-in people.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import RawPostDataException
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.operation import Operation
from ninja.parser import Parser

from chatsite.accounts.auth import SessionOrKey
from chatsite.errors import InvalidRequest, InvalidText
from chatsite.json_body import read_json
from chatsite.openapi.document import Document
from chatsite.v1.errors import ApiError, response_of, told_of


class BoundedParser(Parser):
    """JSON as every door of the site reads it; an object, for django-ninja reads defaults from whatever else it is."""

    def parse_body(self, request: HttpRequest) -> Any:
        body = read_json(request)
        if not isinstance(body, dict):
            raise InvalidRequest("The body must be a JSON object.")
        return body

    def parse_querydict(self, data: Any, list_fields: list[str], request: HttpRequest) -> Any:
        if any("\x00" in value for values in data.lists() for value in values[1]):
            raise InvalidText("The query holds a NUL character.")
        return super().parse_querydict(data, list_fields, request)


class SiteAPI(NinjaAPI):
    """Its schema is that of the whole site: both doors in one document."""

    def get_openapi_schema(self, *, path_prefix: str | None = None, path_params: Any = None) -> Document:
        return Document(self, self.get_root_path(path_params or {}) if path_prefix is None else path_prefix)

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__


def _to_read(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """For the pages about the API itself, which django-ninja shows to whatever method asks."""
    return require_safe(login_required(view))


api = SiteAPI(
    title="Rill",
    version="1",
    urls_namespace="api",
    auth=[SessionOrKey("chat")],
    parser=BoundedParser(),
    docs_decorator=_to_read,
)


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    first = error.errors[0]
    # The location begins with where the value came from and the handler's argument: body, payload, title.
    param = ".".join(str(part) for part in first["loc"][1:]) or None
    return response_of(ApiError(400, "invalid_value", f"{first['msg']}.", param=param))


@api.exception_handler(MultiPartParserError)
@api.exception_handler(RawPostDataException)
def _no_json(request: HttpRequest, error: Exception) -> HttpResponse:
    # The look for a CSRF token takes the body for a form where it says that it is one.
    return response_of(
        ApiError(400, "invalid_request", "The body must be JSON; this one is, or should be, a form.")
    )


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return response_of(ApiError(404, "not_found", "There is nothing at this URL."))


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    code = "unauthenticated" if error.status_code == 401 else "invalid_request"
    return response_of(ApiError(error.status_code, code, str(error)))


@api.exception_handler(Exception)
def _told(request: HttpRequest, error: Exception) -> HttpResponse:
    """Our own errors, and whatever else comes up, as everywhere under the doors."""
    return response_of(told_of(error, ascii(request.path)))


api.add_router("", "chatsite.accounts.api.router")
api.add_router("", "chatsite.accounts.quotas.api.router")
api.add_router("", "chatsite.accounts.usage_api.router")
api.add_router("", "chatsite.chat.api.router")
api.add_router("/cache", "chatsite.cache_api.router")
