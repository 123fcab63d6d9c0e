"""The self-test in the admin: does what the server streams arrive as it was sent, or does something on the way collect
it?

The page measures, because only it stands behind the proxy; here are its texts and the stream that it measures. Staff
only.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chatsite.chat import frames
from chatsite.db import run_in_db
from chatsite.sse import HEADERS

NUM_EVENTS = 20
EVERY_S = 0.1


@require_safe
def selftest_page(request: HttpRequest) -> HttpResponse:
    boot = {
        "protocol": frames.PROTOCOL,
        "num": NUM_EVENTS,
        "every_ms": round(EVERY_S * 1000),
        "texts": _texts(),
    }
    context = admin.site.each_context(request) | {"title": _("Self-test"), "boot": boot}
    return TemplateResponse(request, "admin/selftest.html", context)


@require_safe
async def selftest_events(request: HttpRequest) -> HttpResponseBase:
    """Numbered events, one after the other, with the headers of every stream of answers."""
    if not await run_in_db(admin.site.has_permission, request):
        return redirect_to_login(request.get_full_path(), reverse("admin:login"))
    return StreamingHttpResponse(_events(), headers=HEADERS)


async def _events() -> AsyncGenerator[bytes, None]:
    for number in range(NUM_EVENTS):
        if number:
            await asyncio.sleep(EVERY_S)
        yield f"data: {json.dumps({'number': number})}\n\n".encode()


def _texts() -> dict[str, str]:
    """What the page says of what it measured; {names} are filled in there."""
    return {
        "measuring": _("Measuring …"),
        "socket.flows": _(
            "WebSockets come through: open after {first} ms, {num} of {of} frames answered, the slowest "
            "after {slowest} ms."
        ),
        "socket.slow": _(
            "WebSockets open, but frames are held back: the slowest of {num} was answered after {slowest} "
            "ms. Something on the way collects them."
        ),
        "socket.blocked": _(
            "WebSockets do not come through. The chat goes on by event streams. Let the proxy pass the "
            "headers Upgrade and Connection."
        ),
        "events.flows": _(
            "Event streams flow: the first event came after {first} ms, all {num} one after the other "
            "within {spread} ms."
        ),
        "events.buffered": _(
            "Event streams are held back: {num} events that were sent over {expected} ms arrived within "
            "{spread} ms, the first after {first} ms. Switch off buffering and compression for "
            "text/event-stream (nginx: proxy_buffering off)."
        ),
        "events.blocked": _(
            "Event streams do not come through: {num} of {of} events arrived. The chat goes on by repeated "
            "requests."
        ),
    }
