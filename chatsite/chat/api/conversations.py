"""Conversations: list, make, read, change, erase. A door to `chatsite.chat.library`."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Field, Router, Status

from chatsite.accounts.auth import caller_of
from chatsite.chat import bulk, erasure, library, listing
from chatsite.chat.api.rights import ReceiptRef
from chatsite.chat.notices import Kind, board
from chatsite.chat.schemas.conversations import (
    BulkIn,
    BulkOut,
    ConversationChange,
    ConversationIn,
    ConversationOut,
    ConversationPage,
    TagList,
)
from chatsite.db import run_in_db
from chatsite.engines import served
from chatsite.errors import InvalidRequest

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
    wanted = listing.Wanted(query=q, tag=tag, is_archived=archived)
    page = await run_in_db(listing.conversations, caller_of(request).user_id, wanted, cursor)
    return {"items": page.items, "next": page.following, "num_found": page.num_found}


@router.get("/conversations/tags", response={200: TagList})
async def list_tags(request: HttpRequest) -> dict[str, Any]:
    """The tags of your conversations, archived ones among them, with how many have each, the most used first."""
    return {"items": await run_in_db(listing.tags_of, caller_of(request).user_id)}


@router.post("/conversations", response={200: ConversationOut, 201: ConversationOut})
async def make_conversation(request: HttpRequest, body: ConversationIn) -> Status[library.Shown]:
    """A new conversation without messages; 200 for the one that was made for this `client_message_id` before."""
    await _check_served(body.model)
    columns = body.dict(exclude={"client_message_id"}) | {
        "parameters": body.parameters.dict(exclude_none=True)
    }
    row, is_new = await run_in_db(library.make, caller_of(request).user_id, columns, body.client_message_id)
    return Status(201 if is_new else 200, row)


@router.post("/conversations/bulk", response=BulkOut)
async def change_many(request: HttpRequest, body: BulkIn) -> dict[str, Any]:
    """Archives, pins, tags or erases up to 200 conversations at once: all of them, or none."""
    caller = caller_of(request)
    num_changed, receipt = await bulk.apply(caller, body.action, body.ids, body.tag)
    await board.changed(caller.user_id, Kind.CHANGED if receipt is None else Kind.ERASED, body.ids)
    return {"num_changed": num_changed, "receipt": receipt}


@router.get("/conversations/{uuid:conversation}", response={200: ConversationOut})
async def get_conversation(request: HttpRequest, conversation: UUID) -> library.Shown:
    """A conversation without its messages, which are read in pages."""
    return await run_in_db(library.shown, caller_of(request).user_id, conversation)


@router.patch("/conversations/{uuid:conversation}", response={200: ConversationOut})
async def change_conversation(
    request: HttpRequest, conversation: UUID, body: ConversationChange
) -> library.Shown:
    """Changes title, pin, archive, tags, system prompt, parameters, the model or the active branch."""
    await _check_served(body.model)
    changes = {name: value for name, value in body.dict(exclude_unset=True).items() if value is not None}
    if body.parameters is not None:
        changes["parameters"] = body.parameters.dict(exclude_none=True)
    user_id = caller_of(request).user_id
    row = await run_in_db(library.change, user_id, conversation, changes)
    await board.changed(user_id, Kind.CHANGED, [conversation])
    return row


@router.delete("/conversations/{uuid:conversation}", response={202: ReceiptRef})
async def erase_conversation(request: HttpRequest, conversation: UUID) -> Status[ReceiptRef]:
    """Removes a conversation from every store, within a minute; the receipt says which have done so."""
    caller = caller_of(request)
    receipt = await erasure.erase(caller, conversation)
    await board.changed(caller.user_id, Kind.ERASED, [conversation])
    return Status(202, ReceiptRef.to(receipt))


async def _check_served(model: str | None) -> None:
    """Raises InvalidRequest for a model that no engine is known to serve."""
    if model and (await served(model)).named(model) is None:
        raise InvalidRequest("model is none that is served here.")
