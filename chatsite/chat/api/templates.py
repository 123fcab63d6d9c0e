"""Prompt templates and starters. A door to `chatsite.chat.prompt_templates`."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from ninja import Field, Router, Status

from chatsite.accounts.auth import caller_of
from chatsite.chat import prompt_templates
from chatsite.chat.models import PromptTemplate
from chatsite.chat.schemas.templates import TemplateChange, TemplateIn, TemplateOut, UsedOut, UseIn
from chatsite.db import run_in_db
from chatsite.json_types import RowId

router = Router(tags=["templates"])

OfLanguage = Annotated[
    str, Field(max_length=16, description="Only those of this language, such as `zh-hans`.")
]


@router.get("/templates", response={200: list[TemplateOut], 304: None})
async def list_templates(
    request: HttpRequest, response: HttpResponse, language: OfLanguage = "", starters: bool = False
) -> list[dict[str, Any]] | HttpResponse:
    """Your templates and everybody's, the most used first; with `starters` those that begin a conversation.

    A client that keeps the list sends its `ETag` as `If-None-Match`: 304 when nothing has changed.
    """
    rows = await run_in_db(prompt_templates.listed, caller_of(request), language, only_starters=starters)
    shown = [_shown(row) for row in rows]
    response["ETag"] = etag = f'"{hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:32]}"'
    answer = get_conditional_response(request, etag=etag, response=response)
    return shown if answer is None or answer is response else answer


@router.post("/templates", response={201: TemplateOut})
async def make_template(request: HttpRequest, body: TemplateIn) -> Status[dict[str, Any]]:
    """A new template of yours, or, by staff, of everybody's."""
    columns = body.dict(exclude={"is_shared"})
    row = await run_in_db(prompt_templates.make, caller_of(request), columns, is_shared=body.is_shared)
    return Status(201, _shown(row))


@router.get("/templates/{template}", response={200: TemplateOut})
async def get_template(request: HttpRequest, template: RowId) -> dict[str, Any]:
    """One template."""
    return _shown(await run_in_db(prompt_templates.find, caller_of(request), template))


@router.patch("/templates/{template}", response={200: TemplateOut})
async def change_template(request: HttpRequest, template: RowId, body: TemplateChange) -> dict[str, Any]:
    """Changes a template of yours, or, by staff, of everybody's."""
    columns = {name: value for name, value in body.dict(exclude_unset=True).items() if value is not None}
    return _shown(await run_in_db(prompt_templates.change, caller_of(request), template, columns))


@router.delete("/templates/{template}", response={204: None})
async def erase_template(request: HttpRequest, template: RowId) -> Status[None]:
    """Erases a template of yours, or, by staff, of everybody's."""
    await run_in_db(prompt_templates.erase, caller_of(request), template)
    return Status(204, None)


@router.post("/templates/{template}/use", response={200: UsedOut})
async def use_template(request: HttpRequest, template: RowId, body: UseIn) -> dict[str, Any]:
    """The text with its variables filled in; the use counts for the order of the list."""
    text, missing = await run_in_db(prompt_templates.use, caller_of(request), template, body.values)
    return {"text": text, "missing": missing}


def _shown(row: PromptTemplate) -> dict[str, Any]:
    names = ("id", "title", "body", "language", "is_starter", "use_count")
    shown = {name: getattr(row, name) for name in names}
    return shown | {
        "variables": prompt_templates.variables_of(row.body),
        "is_shared": row.owner_id is None,
    }
