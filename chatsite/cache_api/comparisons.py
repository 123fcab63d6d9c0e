"""A stored answer beside what the model says now: have it made, and see how far it is."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from chatsite.cache_api.schemas import CompareIn, ComparisonOut
from chatsite.cache_api.staff import allow, in_thread
from chatsite.db import run_in_db
from chatsite.errors import NotFound
from chatsite.json_types import RowId
from chatsite.v1.errors import ApiError
from semcache.admin.compare import begin
from semcache.explain import decision_on
from semcache.models import CacheComparison
from semcache.quality.comparisons import NoSuchAnswer, StillMaking, Wanted, nearest

router = Router()


@router.post("", response={202: ComparisonOut})
async def begin_cache_comparison(request: HttpRequest, body: CompareIn) -> Status[dict[str, Any]]:
    """A worker has the model answer the question afresh; nothing is counted or stored in the cache. One at a time for
    each person; a day later it is gone."""
    return Status(202, await in_thread(_begun, request, body))


@router.get("/{comparison_id}", response=ComparisonOut)
async def get_cache_comparison(request: HttpRequest, comparison_id: RowId) -> dict[str, Any]:
    """How far a comparison is, and what came of it."""
    return await run_in_db(_one, request, comparison_id)


def _begun(request: HttpRequest, body: CompareIn) -> dict[str, Any]:
    _allow(request)
    asked = Wanted(body.text, body.tenant, body.owner, body.model)
    try:
        entry = body.entry or nearest(decision_on(asked.text, asked.tenant, asked.owner, asked.model))
        return _shown(begin(request, asked, entry))
    except NoSuchAnswer:
        raise NotFound("There is no such stored answer.") from None
    except StillMaking:
        raise ApiError(409, "still_comparing", "Your last comparison has not ended yet.") from None


def _one(request: HttpRequest, comparison_id: int) -> dict[str, Any]:
    _allow(request)
    row = CacheComparison.objects.filter(pk=comparison_id).first()
    if row is None:
        raise NotFound("There is no such comparison.")
    return _shown(row)


def _allow(request: HttpRequest) -> None:
    for permission in ("view_cacherule", "view_cacheentry"):
        allow(request, permission)


def _shown(row: CacheComparison) -> dict[str, Any]:
    row.refresh_from_db()
    return {name: getattr(row, name) for name in ComparisonOut.model_fields}
