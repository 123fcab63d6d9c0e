"""Is this process alive, can the site answer, and its numbers.

Ready means: a token was produced lately, the database answers, and this process is not about to stop. Knows nobody:
these routes are open, so they say reasons and no details.
"""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from chatsite import metrics
from chatsite.db import run_in_db
from chatsite.engine import Engine
from chatsite.engine_metrics import EngineMetrics, Told
from chatsite.engines import engines
from chatsite.hosts import is_loopback
from inference.errors import EngineError
from inference.types import EngineStats

ENGINE_ANSWERS_WITHIN_S = 2.0
DATABASE_ANSWERS_WITHIN_S = 2.0
# Set by a proxy. With one in front every request comes from loopback, so loopback proves nothing.
PROXY_HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-IP")


@dataclass(slots=True)
class _Process:
    is_draining: bool = False


_process = _Process()


def start_draining() -> None:
    """From now on this process reports not ready, so that new visitors are sent elsewhere."""
    _process.is_draining = True


def is_draining() -> bool:
    return _process.is_draining


@require_safe
async def live(request: HttpRequest) -> JsonResponse:
    """200 whenever this process runs its loop."""
    return JsonResponse({"status": "live"})


@require_safe
async def ready(request: HttpRequest) -> JsonResponse:
    """200 when a question would be answered; 503 with the reason of each part otherwise."""
    engine_troubles, database_trouble = await asyncio.gather(_engine_troubles(), _database_trouble())
    # One that is down takes its own model with it; the others answer.
    engine_trouble = engine_troubles[0] if all(engine_troubles) else ""
    draining_trouble = "this process is stopping" if is_draining() else ""
    troubles = {"engine": engine_trouble, "database": database_trouble, "web": draining_trouble}
    is_ready = not any(troubles.values())
    checks = {name: _check(trouble) for name, trouble in troubles.items()}
    body: dict[str, Any] = {"status": "ready" if is_ready else "not ready", "checks": checks}
    if len(engine_troubles) > 1:
        body["engines"] = [_check(trouble) for trouble in engine_troubles]
    return JsonResponse(body, status=200 if is_ready else 503)


def _check(trouble: str) -> dict[str, Any]:
    return {"is_ok": not trouble, "reason": trouble}


@require_safe
async def prometheus(request: HttpRequest) -> HttpResponse:
    """The numbers, for callers from this host and for those with the token."""
    if not may_read_metrics(request):
        response = HttpResponse("metrics need a token\n", status=401, content_type="text/plain")
        response["WWW-Authenticate"] = "Bearer"
        return response
    return HttpResponse(metrics.render(EngineMetrics(await _told())), content_type=CONTENT_TYPE_LATEST)


def may_read_metrics(request: HttpRequest) -> bool:
    token = settings.CONFIG.metrics_token
    given = request.headers.get("Authorization", "")
    if token and hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return True
    return is_loopback(request.META.get("REMOTE_ADDR") or "") and not any(
        h in request.headers for h in PROXY_HEADERS
    )


async def _told() -> list[Told]:
    """By each engine, in their order."""
    every = engines().every
    if len(every) > 1:
        await engines().served()  # by their models they are told apart
    stats = await asyncio.gather(*(_stats(engine) for engine in every))
    return [
        Told(engine.address, engine.info.model if engine.info else "", said)
        for engine, said in zip(every, stats, strict=True)
    ]


async def _stats(engine: Engine) -> EngineStats | None:
    try:
        async with asyncio.timeout(ENGINE_ANSWERS_WITHIN_S):
            return await engine.client.stats()
    except (EngineError, TimeoutError):
        return None


async def _engine_troubles() -> list[str]:
    return [_trouble(told.stats) for told in await _told()]


def _trouble(stats: EngineStats | None) -> str:
    if stats is None:
        return "the engine does not answer"
    return "" if stats.is_ready else stats.reason or "the engine makes no tokens"


async def _database_trouble() -> str:
    try:
        async with asyncio.timeout(DATABASE_ANSWERS_WITHIN_S):
            await run_in_db(_ask_database)
    except (Error, TimeoutError):
        return "the database does not answer"
    return ""


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


urlpatterns = [
    path("health/live", live, name="health-live"),
    path("health/ready", ready, name="health-ready"),
    path("metrics", prometheus, name="metrics"),
]
