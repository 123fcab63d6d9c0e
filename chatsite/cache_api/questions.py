"""What a question would meet: the cache's real decision, told step by step and counted nowhere."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from chatsite.cache_api.schemas import TriedOut, TryIn
from chatsite.cache_api.staff import allow, in_thread, refused
from semcache.admin.forms import TryQuestionForm
from semcache.admin.trial import as_json, told

router = Router()


@router.post("/test", response=TriedOut)
async def try_cache_question(request: HttpRequest, body: TryIn) -> dict[str, Any]:
    """The rule that decides and why, the scope, the nearest stored questions with what the guard and the verifier say
    about each, and the time of every step."""
    return await in_thread(_tried, request, body)


def _tried(request: HttpRequest, body: TryIn) -> dict[str, Any]:
    allow(request, "view_cacherule")
    form = TryQuestionForm(body.dict())
    if not form.is_valid():
        raise refused(form)
    may_read = request.user.has_perm("semcache.view_cacheentry")
    return as_json(*told(form.cleaned_data), may_read=may_read)
