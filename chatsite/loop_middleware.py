"""Django's own middleware on the event loop: looking at headers and cookies waits for nothing.

As it comes, each class hands both of its halves to a thread, some twenty turns of threads for one request, while all
streams wait. What may wait for rows still goes to a thread. Knows no view.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from csp.middleware import CSPMiddleware
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.locale import LocaleMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.deprecation import MiddlewareMixin

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class OnLoop(MiddlewareMixin):
    """Before Django's class among the bases: both halves are called on the loop, unless the second may wait."""

    get_response: Any

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase | None = None
        if hasattr(self, "process_request"):
            response = self.process_request(request)
        if response is None:
            response = await self.get_response(request)
        if hasattr(self, "process_response"):
            finish = self.process_response
            response = (
                await sync_to_async(finish)(request, response)
                if self.may_wait(request)
                else finish(request, response)
            )
        assert response is not None
        return response

    def may_wait(self, request: HttpRequest) -> bool:
        return False


class Security(OnLoop, SecurityMiddleware):
    pass


class FrameOptions(OnLoop, XFrameOptionsMiddleware):
    pass


class ContentPolicy(OnLoop, CSPMiddleware):
    pass


class Session(OnLoop, SessionMiddleware):
    def may_wait(self, request: HttpRequest) -> bool:
        return request.session.modified


class Locale(OnLoop, LocaleMiddleware):
    pass


class Common(OnLoop, CommonMiddleware):
    pass


class Csrf(OnLoop, CsrfViewMiddleware):
    async def process_view(  # type: ignore[override]
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        check = super().process_view
        if request.content_type in FORMS:  # whose body is read
            return await sync_to_async(check)(request, view, args, kwargs)
        return check(request, view, args, kwargs)


class Authentication(OnLoop, AuthenticationMiddleware):
    pass


class Messages(OnLoop, MessageMiddleware):
    def may_wait(self, request: HttpRequest) -> bool:
        kept = request._messages  # type: ignore[attr-defined]
        return bool(kept.used or kept.added_new)  # what does not fit into a cookie goes to the session


# By the name that settings have for it.
ON_LOOP = {
    f"{base.__module__}.{base.__qualname__}": f"{__name__}.{own.__qualname__}"
    for own in OnLoop.__subclasses__()
    for base in own.__bases__[1:]
}
