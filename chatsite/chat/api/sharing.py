"""Links to snapshots of conversations, for signed-in people: a key shows nothing to the world. A door to `sharing`."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from ninja import Field, Router, Schema, Status

from chatsite.accounts.auth import SESSION, caller_of
from chatsite.chat import sharing
from chatsite.chat.models import ShareLink
from chatsite.db import run_in_db

router = Router(tags=["sharing"])


class ShareItem(Schema):
    """A link without its address, which is told once only."""

    id: UUID
    num_messages: int = Field(description="How many messages the snapshot holds.")
    created_at: datetime
    revoked_at: datetime | None = Field(description="When it was taken back; it shows nothing since.")


class ShareList(Schema):
    items: list[ShareItem]


class ShareOut(ShareItem):
    """A new link; its address cannot be read again."""

    url: str = Field(description="Where the snapshot is seen, without a sign-in.", examples=["/s/SECRET"])


@router.get(
    "/conversations/{uuid:conversation}/shares", response={200: ShareList}, auth=SESSION, url_name="shares"
)
async def list_shares(request: HttpRequest, conversation: UUID) -> dict[str, list[ShareLink]]:
    """The links of a conversation, the newest first, those taken back among them."""
    return {"items": await run_in_db(sharing.links_of, caller_of(request).user_id, conversation)}


@router.post("/conversations/{uuid:conversation}/shares", response={201: ShareOut}, auth=SESSION)
async def make_share(request: HttpRequest, conversation: UUID) -> Status[ShareOut]:
    """A link to the conversation as it is now: the shown branch as far as it is finished, and its title.

    What is said later is not shown. 409 `not_shareable` for temporary, empty and very long ones.
    """
    link, secret = await run_in_db(sharing.share, caller_of(request).user_id, conversation)
    shown = ShareItem.from_orm(link).dict()
    return Status(201, ShareOut(**shown, url=reverse("shared", args=[secret])))


@router.delete("/shares/{uuid:share}", response={204: None}, auth=SESSION)
async def revoke_share(request: HttpRequest, share: UUID) -> Status[None]:
    """Takes a link back: it shows nothing from now on, and its snapshot is gone."""
    await run_in_db(sharing.revoke, caller_of(request).user_id, share)
    return Status(204, None)
