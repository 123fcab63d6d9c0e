"""Conversations: list, make, read, change, erase. A door to `chatsite.chat.library`."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Field, Router, Status

from chatsite.accounts.auth import caller_of
from chatsite.chat import bulk, erasure, library
from chatsite.chat.api.rights import ReceiptRef
from chatsite.chat.models import Conversation
from chatsite.chat.schemas.conversations import (
    BulkIn,
    BulkOut,
    ConversationChange,
    ConversationIn,
    ConversationOut,
    ConversationPage,
)
from chatsite.db import run_in_db

router = Router(tags=["conversations"])

Query = Annotated[
    str, Field(max_length=200, description="Words of titles and messages, all of which must occur.")
]
Cursor = Annotated[str, Field(description="`next` of the page before.")]


@router.get("/conversations", response={200: ConversationPage})
async def list_conversations(
    request: HttpRequest,
    q: Query = "",
    tag: Annotated[str, Field(max_length=40)] = "",
    archived: bool = False,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """A page of your conversations, pinned ones first, then the latest; temporary ones are never listed."""
    wanted = library.Wanted(query=q, tag=tag, is_archived=archived)
    items, following = await run_in_db(library.conversations, caller_of(request).user_id, wanted, cursor)
    return {"items": items, "next": following}


@router.post("/conversations", response={201: ConversationOut})
async def make_conversation(request: HttpRequest, body: ConversationIn) -> Status[Conversation]:
    """A new conversation without messages."""
    columns = body.dict() | {"parameters": body.parameters.dict(exclude_none=True)}
    return Status(201, await run_in_db(library.make, caller_of(request).user_id, columns))


@router.post("/conversations/bulk", response=BulkOut)
async def change_many(request: HttpRequest, body: BulkIn) -> dict[str, Any]:
    """Archives, pins, tags or erases up to 200 conversations at once: all of them, or none."""
    num_changed, receipt = await bulk.apply(caller_of(request), body.action, body.ids, body.tag)
    return {"num_changed": num_changed, "receipt": receipt}


@router.get("/conversations/{uuid:conversation}", response={200: ConversationOut})
async def get_conversation(request: HttpRequest, conversation: UUID) -> Conversation:
    """A conversation without its messages, which are read in pages."""
    return await run_in_db(library.shown, caller_of(request).user_id, conversation)


@router.patch("/conversations/{uuid:conversation}", response={200: ConversationOut})
async def change_conversation(
    request: HttpRequest, conversation: UUID, body: ConversationChange
) -> Conversation:
    """Changes title, pin, archive, tags, system prompt, parameters or the active branch."""
    changes = {name: value for name, value in body.dict(exclude_unset=True).items() if value is not None}
    if body.parameters is not None:
        changes["parameters"] = body.parameters.dict(exclude_none=True)
    return await run_in_db(library.change, caller_of(request).user_id, conversation, changes)


@router.delete("/conversations/{uuid:conversation}", response={202: ReceiptRef})
async def erase_conversation(request: HttpRequest, conversation: UUID) -> Status[ReceiptRef]:
    """Removes a conversation from every store, within a minute; the receipt says which have done so."""
    return Status(202, ReceiptRef.to(await erasure.erase(caller_of(request), conversation)))
