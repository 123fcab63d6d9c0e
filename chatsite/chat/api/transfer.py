"""Conversations as files, out and in. A door to `chatsite.chat.transfer`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from ninja import Field, Router, Schema, Status
from pydantic import ConfigDict

from chatsite.accounts.auth import caller_of
from chatsite.chat import library
from chatsite.chat.notices import Kind, board
from chatsite.chat.transfer import export, rows
from chatsite.chat.transfer.form import FORMAT, VERSION
from chatsite.chat.transfer.reading import talks_of
from chatsite.db import run_in_db
from chatsite.json_body import read_json

router = Router(tags=["files"])

Form = Annotated[
    Literal["json", "markdown"],
    Field(description="`json` holds all branches and can be imported again; `markdown` is for people."),
]
TYPES = {"json": "application/json", "markdown": "text/markdown; charset=utf-8"}
MAX_EXPORTED = 10_000  # as many as an import takes
WRITERS = {"json": export.as_json, "markdown": export.as_markdown}
# What file systems or headers do not take in a name.
_UNFIT = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|.]+')
ENDINGS = {"json": "json", "markdown": "md"}
EXAMPLE = {
    "format": FORMAT,
    "version": VERSION,
    "conversations": [
        {
            "title": "Rivers",
            "created_at": "2026-01-01T12:00:00Z",
            "updated_at": "2026-01-01T12:00:05Z",
            "active": 2,
            "messages": [
                {
                    "number": 1,
                    "parent": None,
                    "role": "user",
                    "text": "Which river is the longest?",
                    "created_at": "2026-01-01T12:00:00Z",
                },
                {
                    "number": 2,
                    "parent": 1,
                    "role": "assistant",
                    "text": "The Nile.",
                    "created_at": "2026-01-01T12:00:01Z",
                },
            ],
        }
    ],
}
FILE = {
    "responses": {
        200: {
            "description": "The file.",
            "content": {
                "application/json": {"schema": {"type": "object"}, "example": EXAMPLE},
                "text/markdown": {
                    "schema": {"type": "string"},
                    "example": "# Rivers\n\n## You\n\nWhich river is the longest?\n",
                },
            },
        }
    }
}
UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": ["object", "array"]}, "example": EXAMPLE}},
    }
}


class ExportIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"ids": ["6f2f3c5e-3f0d-4f0e-9a53-9d9a3f4f4b1e"], "form": "markdown"}},
    )

    ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_EXPORTED)]
    form: Form = "json"


class ImportedOut(Schema):
    conversations: list[UUID] = Field(description="The new conversations, in the order of the file.")
    num_messages: int


@router.get("/conversations/export", response={200: None}, openapi_extra=FILE)
async def export_conversations(request: HttpRequest, form: Form = "json") -> StreamingHttpResponse:
    """All your conversations but temporary ones, as one file."""
    user_id = caller_of(request).user_id
    return _file(user_id, await run_in_db(rows.ids_of, user_id), form)


@router.post("/conversations/export", response={200: None}, openapi_extra=FILE)
async def export_named(request: HttpRequest, body: ExportIn) -> StreamingHttpResponse:
    """The named conversations of yours as one file, each once; those that are not there are left out."""
    user_id = caller_of(request).user_id
    return _file(user_id, await run_in_db(rows.those_of, user_id, body.ids), body.form)


@router.get("/conversations/{uuid:conversation}/export", response={200: None}, openapi_extra=FILE)
async def export_conversation(
    request: HttpRequest, conversation: UUID, form: Form = "json"
) -> StreamingHttpResponse:
    """One conversation as a file."""
    user_id = caller_of(request).user_id
    row = await run_in_db(library.owned, user_id, conversation)  # an unknown one is a 404, not an empty file
    return _file(user_id, [conversation], form, row.title)


@router.post("/conversations/import", response={201: ImportedOut}, openapi_extra=UPLOAD)
async def import_conversations(request: HttpRequest) -> Status[dict[str, Any]]:
    """Takes in a file of our own or ChatGPT's `conversations.json`, with all branches; all of it, or nothing.

    What cannot be taken is refused with 400 `unreadable_file`, whose message says where and why.
    """
    value = await asyncio.to_thread(read_json, request, settings.CONFIG.max_import_bytes)
    talks = await asyncio.to_thread(talks_of, value)
    user_id = caller_of(request).user_id
    ids = await run_in_db(rows.store, user_id, talks)
    await board.changed(user_id, Kind.MANY)
    return Status(201, {"conversations": ids, "num_messages": sum(len(talk.messages) for talk in talks)})


def _file(user_id: int, conversations: Sequence[UUID], form: Form, title: str = "") -> StreamingHttpResponse:
    response = StreamingHttpResponse(WRITERS[form](user_id, conversations), content_type=TYPES[form])
    name = f"{_UNFIT.sub(' ', title).strip()[:80] or 'conversations'}.{ENDINGS[form]}"
    response["Content-Disposition"] = content_disposition_header(True, name)
    return response
