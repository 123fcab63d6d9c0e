"""The engines' page in the admin: asks each engine now and shows what it says, or why it says nothing.

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

from chatsite.engine import Engine
from chatsite.engine_report import sections_of
from chatsite.engines import engines
from inference.client import EngineClient
from inference.errors import EngineError, ModelLoading
from inference.types import EngineInfo, EngineStats

ANSWERS_WITHIN_S = 3.0


@require_safe
def engine_page(request: HttpRequest) -> HttpResponse:
    """Always 200: an engine that is down is a thing to be told."""
    context = admin.site.each_context(request) | {
        "title": _("Engine"),
        "engines": async_to_sync(_told_by_all)(),
    }
    return TemplateResponse(request, "admin/engine.html", context)


async def _told_by_all() -> list[dict[str, object]]:
    """On the server's own loop, whose clients are there already."""
    every = engines().every
    found = await asyncio.gather(*(_told_by(engine) for engine in every))
    if len(every) == 1:
        return [*found]
    await engines().served()
    names = [f"{engine.info.model} · {engine.address}" if engine.info else engine.address for engine in every]
    return [told | {"name": name} for told, name in zip(found, names, strict=True)]


async def _told_by(engine: Engine) -> dict[str, object]:
    try:
        info, stats = await _ask(engine.client)
    except EngineError as error:
        return {"trouble": error.message}
    except TimeoutError:
        return {"trouble": _("it does not answer within %(seconds)d seconds") % {"seconds": ANSWERS_WITHIN_S}}
    trouble = "" if stats.is_ready else stats.reason or _("it makes no tokens")
    return {"trouble": trouble, "sections": sections_of(info, stats)}


async def _ask(client: EngineClient) -> tuple[EngineInfo | None, EngineStats]:
    """Raises EngineError, TimeoutError."""
    async with asyncio.timeout(ANSWERS_WITHIN_S):
        stats = await client.stats()
        try:
            return await client.info(), stats
        except ModelLoading:
            return None, stats
