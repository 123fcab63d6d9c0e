"""The engine's page in the admin: asks the engine now and shows what it says, or why it says nothing.

Parses nothing, changes nothing. What the numbers mean is `engine_report`'s business. Staff only: the admin's own
door decides.
"""

from __future__ import annotations

import asyncio

from asgiref.sync import async_to_sync
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chatsite.engine import engine
from chatsite.engine_report import sections_of
from inference.errors import EngineError, ModelLoading
from inference.types import EngineInfo, EngineStats

ANSWERS_WITHIN_S = 3.0


@require_safe
def engine_page(request: HttpRequest) -> HttpResponse:
    """Always 200: an engine that is down is a thing to be told."""
    context = admin.site.each_context(request) | {"title": _("Engine")} | _told()
    return TemplateResponse(request, "admin/engine.html", context)


def _told() -> dict[str, object]:
    try:
        info, stats = async_to_sync(_ask)()
    except EngineError as error:
        return {"trouble": error.message}
    except TimeoutError:
        return {"trouble": _("it does not answer within %(seconds)d seconds") % {"seconds": ANSWERS_WITHIN_S}}
    trouble = "" if stats.is_ready else stats.reason or _("it makes no tokens")
    return {"trouble": trouble, "sections": sections_of(info, stats)}


async def _ask() -> tuple[EngineInfo | None, EngineStats]:
    """On the server's own loop, whose client is there already. Raises EngineError, TimeoutError."""
    async with asyncio.timeout(ANSWERS_WITHIN_S):
        stats = await engine().stats()
        try:
            return await engine().info(), stats
        except ModelLoading:
            return None, stats
