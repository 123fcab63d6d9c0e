"""Regression cases: questions with what the cache must do with them, how they went, and to have them run again."""

from __future__ import annotations

from typing import Any, Literal

from django.db import transaction
from django.forms.models import model_to_dict
from django.http import HttpRequest
from ninja import Router, Status

from chatsite.cache_api.schemas import CaseChange, CaseIn, CaseOut, NumOut, RunIn
from chatsite.cache_api.staff import allow, refused
from chatsite.db import run_in_db
from chatsite.errors import NotFound
from chatsite.json_types import RowId
from semcache.admin import cases as pages
from semcache.admin.audit import note_row
from semcache.admin.case_forms import FIELDS, OF_ENTRIES, CacheCaseForm
from semcache.admin.case_words import case_json
from semcache.models import CacheCase
from semcache.quality import cases

router = Router()


@router.get("", response=list[CaseOut])
async def list_cache_cases(
    request: HttpRequest, state: Literal["", "new", "passed", "failed"] = ""
) -> list[dict[str, Any]]:
    """All of them, or those of a state, with how they went."""
    return await run_in_db(_listed, request, state)


@router.post("", response={201: CaseOut})
async def add_cache_case(request: HttpRequest, body: CaseIn) -> Status[dict[str, Any]]:
    """A new one; a worker runs it at once."""
    return Status(201, await run_in_db(_saved, request, None, body.dict()))


@router.post("/run", response={202: NumOut})
async def run_cache_cases(request: HttpRequest, body: RunIn) -> Status[dict[str, int]]:
    """A worker runs them again; they are due until then."""
    return Status(202, {"num": await run_in_db(_due, request, body.ids)})


@router.get("/{case_id}", response=CaseOut)
async def get_cache_case(request: HttpRequest, case_id: RowId) -> dict[str, Any]:
    """One, with how it went."""
    return await run_in_db(_one, request, case_id)


@router.patch("/{case_id}", response=CaseOut)
async def change_cache_case(request: HttpRequest, case_id: RowId, body: CaseChange) -> dict[str, Any]:
    """One that asks or expects something else than before has never been run."""
    return await run_in_db(_saved, request, case_id, body.dict())


@router.delete("/{case_id}", response={204: None})
async def delete_cache_case(request: HttpRequest, case_id: RowId) -> Status[None]:
    """Deletes it."""
    await run_in_db(_deleted, request, case_id)
    return Status(204, None)


def _listed(request: HttpRequest, state: str) -> list[dict[str, Any]]:
    allow(request, "view_cacherule")
    chosen = CacheCase.objects.filter(state=state) if state else CacheCase.objects.all()
    return [_shown(request, case) for case in chosen.order_by("pk")]


def _one(request: HttpRequest, case_id: int) -> dict[str, Any]:
    allow(request, "view_cacherule")
    return _shown(request, _row(case_id))


@transaction.atomic
def _saved(request: HttpRequest, case_id: int | None, given: dict[str, Any]) -> dict[str, Any]:
    allow(request, "change_cacherule")
    case = CacheCase() if case_id is None else _row(case_id)
    told = {name: value for name, value in given.items() if value is not None}
    if any(told.get(name) for name in (*OF_ENTRIES, "entry")):
        allow(request, "view_cacheentry")
    form = CacheCaseForm(model_to_dict(case, FIELDS) | told, instance=case)
    if not form.is_valid():
        raise refused(form)
    saved = form.save()
    note_row(request, saved, pages.changed(form) if case_id else f"added: expects {saved.expected}")
    transaction.on_commit(pages.send, robust=True)
    return _shown(request, _row(saved.pk))


@transaction.atomic
def _deleted(request: HttpRequest, case_id: int) -> None:
    allow(request, "change_cacherule")
    case = _row(case_id)
    note_row(request, case, "deleted", is_deletion=True)
    case.delete()


@transaction.atomic
def _due(request: HttpRequest, ids: list[int] | None) -> int:
    allow(request, "change_cacherule")
    transaction.on_commit(pages.send, robust=True)
    return cases.mark_due(ids)


def _row(case_id: int) -> CacheCase:
    case = CacheCase.objects.filter(pk=case_id).first()
    if case is None:
        raise NotFound("There is no such case.")
    return case


def _shown(request: HttpRequest, case: CacheCase) -> dict[str, Any]:
    return case_json(case, may_read=pages.may_read(request))
