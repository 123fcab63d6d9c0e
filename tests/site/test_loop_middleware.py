"""The chain of middleware for a request whose headers are all that is looked at takes no thread; what may wait does."""

from __future__ import annotations

import threading
from io import BytesIO

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from chatsite import loop_middleware
from chatsite.accounts.sessions import SessionStore
from chatsite.loop_middleware import ON_LOOP, Csrf, Messages, OnLoop, Session

THREADLESS = [
    getattr(loop_middleware, name)
    for name in (
        "Security",
        "FrameOptions",
        "ContentPolicy",
        "Session",
        "Locale",
        "Common",
        "Csrf",
        "Messages",
    )
]


def request(method: str = "GET", content_type: str = "") -> ASGIRequest:
    headers = [(b"host", b"localhost"), (b"content-type", content_type.encode())]
    made = ASGIRequest(
        {"type": "http", "method": method, "path": "/v1/models", "headers": headers}, BytesIO()
    )
    made.user = AnonymousUser()
    return made


async def _response(_: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


def on_thread(middleware: type[OnLoop], called: list[int]) -> type[OnLoop]:
    """The same, noting the threads on which its second half runs."""

    class Noting(middleware):  # type: ignore[misc, valid-type]
        def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
            called.append(threading.get_ident())
            return response

    return Noting


@pytest.mark.parametrize("middleware", THREADLESS, ids=lambda one: one.__name__)
async def test_no_thread_is_taken_for_headers_and_cookies(middleware: type[OnLoop]) -> None:
    asked = request()
    await SessionMiddleware(_response).__acall__(asked)
    await Messages(_response).__acall__(asked)
    called: list[int] = []
    await on_thread(middleware, called)(_response).__acall__(asked)
    assert called == [threading.get_ident()]


async def test_a_session_that_changed_goes_to_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SessionStore, "save", lambda self: None)

    async def signing_in(asked: HttpRequest) -> HttpResponse:
        asked.session["user"] = "7"
        return HttpResponse("ok")

    called: list[int] = []
    await on_thread(Session, called)(signing_in).__acall__(request())
    assert called and called != [threading.get_ident()]


@pytest.mark.parametrize(
    ("content_type", "is_on_thread"),
    [
        ("application/json", False),
        ("", False),
        ("application/x-www-form-urlencoded", True),
        ("multipart/form-data; boundary=x", True),
    ],
)
async def test_only_where_a_form_is_read_the_token_is_looked_for_on_a_thread(
    monkeypatch: pytest.MonkeyPatch, content_type: str, is_on_thread: bool
) -> None:
    called: list[int] = []
    monkeypatch.setattr(CsrfViewMiddleware, "_check_token", lambda *_: called.append(threading.get_ident()))
    assert await Csrf(_response).process_view(request("POST", content_type), _response, (), {}) is None
    assert (called != [threading.get_ident()]) is is_on_thread and called


async def test_a_request_without_a_token_is_refused_on_the_loop_as_well() -> None:
    refused = await Csrf(_response).process_view(request("POST", "application/json"), _response, (), {})
    assert refused is not None and refused.status_code == 403


def test_each_stands_in_for_one_that_the_settings_name() -> None:
    assert set(ON_LOOP) <= set(settings.MIDDLEWARE)
    assert len(ON_LOOP) == len(OnLoop.__subclasses__())


async def test_a_message_goes_to_a_thread() -> None:
    async def telling(asked: HttpRequest) -> HttpResponse:
        asked._messages.added_new = True  # type: ignore[attr-defined]
        return HttpResponse("ok")

    asked, called = request(), list[int]()
    await SessionMiddleware(_response).__acall__(asked)
    await on_thread(Messages, called)(telling).__acall__(asked)
    assert called and called != [threading.get_ident()]
