"""Answers that are brought in from a file, so that they are there before anybody asks: begin an import, watch it."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Field, File, Form, Router, Schema, Status
from ninja.files import UploadedFile

from chatsite.cache_api.schemas import ImportOut
from chatsite.cache_api.staff import allow, in_thread, refused
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest, NotFound
from chatsite.json_types import RowId
from semcache.admin import imports
from semcache.imports.rows import Judged
from semcache.models import CacheImport

router = Router()
NUM_LISTED = 50
NUM_REFUSED_SHOWN = 200
EXAMPLE = {"rule": 1, "dry_run": True, "file": "question,answer\nWhen do you open?,At nine.\n"}


class ImportIn(Schema):
    """For which questions the answers are. `dry_run` only says which rows would be refused."""

    rule: Annotated[int, Field(ge=1, lt=2**63, description="One that shares its answers.")]
    tenant: Annotated[str, Field(max_length=64)] = ""
    system_prompt: Annotated[str, Field(max_length=50_000)] = ""
    may_name_people: bool = False
    dry_run: bool = False


@router.get("", response=list[ImportOut])
async def list_cache_imports(request: HttpRequest) -> list[dict[str, Any]]:
    """The latest imports and how far they are."""
    return await run_in_db(_listed, request)


@router.post(
    "",
    response={200: ImportOut, 202: ImportOut},
    openapi_extra={"requestBody": {"content": {"multipart/form-data": {"example": EXAMPLE}}}},
)
async def begin_cache_import(
    request: HttpRequest, form: Form[ImportIn], file: File[UploadedFile]
) -> Status[dict[str, Any]]:
    """Takes a file of questions and answers (CSV or JSON lines, UTF-8); a worker stores what is not refused."""
    told = await in_thread(_begun, request, form, file)
    return Status(202 if told["id"] else 200, told)


@router.get("/{import_id}", response=ImportOut)
async def get_cache_import(request: HttpRequest, import_id: RowId) -> dict[str, Any]:
    """How far an import is."""
    return await run_in_db(_one, request, import_id)


def _listed(request: HttpRequest) -> list[dict[str, Any]]:
    allow(request, "add_cacheentry")
    return [_shown(one) for one in CacheImport.objects.defer("rows").order_by("-id")[:NUM_LISTED]]


def _one(request: HttpRequest, import_id: int) -> dict[str, Any]:
    allow(request, "add_cacheentry")
    begun = CacheImport.objects.defer("rows").filter(pk=import_id).first()
    if begun is None:
        raise NotFound("There is no such import.")
    return _shown(begun)


def _begun(request: HttpRequest, given: ImportIn, file: UploadedFile) -> dict[str, Any]:
    allow(request, "add_cacheentry")
    file.seek(0)  # whoever parsed the request has read to its end
    form = imports.FileForm(given.dict(exclude={"dry_run"}), {"file": file})
    if not form.is_valid():
        raise refused(form)
    name, rows = form.cleaned_data["file"]
    found = imports.judged_by(rows, form)
    if found is None:
        raise refused(form)
    refused_rows = [one for one in found if one.why is not None]
    told = {"refused": [_why(one) for one in refused_rows[:NUM_REFUSED_SHOWN]]}
    if given.dry_run:
        counts = {"num_rows": len(found), "num_done": 0, "num_refused": len(refused_rows)}
        return (
            told
            | counts
            | {"id": None, "rule": given.rule, "file_name": name, "state": "dry run", "trouble": ""}
        )
    problem = imports.problem(len(found) - len(refused_rows), form.cleaned_data["rule"])
    if problem:
        raise InvalidRequest(problem)
    return _shown(imports.begin(request, name, found, form)) | told


def _why(one: Judged) -> dict[str, Any]:
    return {"line": one.row.line, "why": str(one.why), "about": one.about}


def _shown(begun: CacheImport) -> dict[str, Any]:
    fields = ("id", "file_name", "state", "num_rows", "num_done", "num_refused", "trouble")
    return {name: getattr(begun, name) for name in fields} | {"rule": begun.rule_id}
