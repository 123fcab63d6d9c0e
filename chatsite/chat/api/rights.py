"""What people may ask about their own data: all of it as a file, all of it erased, and the receipt of an erasure.

In a session only: a key must take nothing away and erase nobody. The receipt is open to whoever has its id.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.contrib.auth import logout
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import reverse
from ninja import Field, Router, Schema, Status
from pydantic import ConfigDict

from chatsite.accounts import brake
from chatsite.accounts.auth import SESSION, caller_of
from chatsite.accounts.models import User
from chatsite.accounts.quotas.refusals import unknown_account
from chatsite.chat import erasure, export, export_link, receipts
from chatsite.chat.models import ErasureReceipt
from chatsite.db import run_in_db
from chatsite.errors import ReplyRefused, RequestError

router = Router(tags=["your data"])
ZIP = {
    "responses": {
        200: {
            "description": "Everything of yours.",
            "content": {
                "application/zip": {"schema": {"type": "string", "format": "binary"}, "example": "PK..."}
            },
        }
    }
}


class NotConfirmed(RequestError):
    code = "not_confirmed"
    status = 403


class ReceiptRef(Schema):
    """Where to read what became of an erasure."""

    receipt: UUID
    url: str

    @classmethod
    def to(cls, receipt: UUID) -> ReceiptRef:
        return cls(receipt=receipt, url=f"/api/receipts/{receipt}")


class StoreOut(Schema):
    """What one store says. Until it does, `at` is null."""

    store: str
    erased: int | None = Field(description="How many things went; null: not counted, or not done yet.")
    kept: int = Field(0, description="How many rows stay without a name.")
    at: datetime | None


class ReceiptOut(Schema):
    """An erasure, store by store. It names nobody."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "7b0f7a4e-3f0d-4f0e-9a53-9d9a3f4f4b1e",
                "what": "conversation",
                "requested_at": "2026-01-01T12:00:00Z",
                "finished_at": None,
                "stores": [
                    {"store": "messages", "erased": 4, "kept": 0, "at": "2026-01-01T12:00:00Z"},
                    {"store": "kv", "erased": None, "kept": 0, "at": None},
                ],
            }
        }
    )

    id: UUID
    what: str
    requested_at: datetime
    finished_at: datetime | None
    stores: list[StoreOut]


class EraseMe(Schema):
    """Whoever has a password gives it; others type their user name."""

    model_config = ConfigDict(json_schema_extra={"example": {"password": "what you sign in with"}})

    password: Annotated[str, Field(max_length=4096)] = ""
    name: Annotated[str, Field(max_length=150)] = ""


class ExportOut(Schema):
    """A link for the same session, once."""

    url: str
    expires_at: datetime


@router.get(
    "/receipts/{uuid:receipt}",
    response={200: ReceiptOut},
    auth=None,
)
async def get_receipt(request: HttpRequest, receipt: UUID) -> dict[str, Any]:
    """What each store says about an erasure; open to whoever has the receipt's id."""
    return _shown(await run_in_db(receipts.find, receipt))


@router.post("/me/erase", response={202: ReceiptRef}, auth=SESSION)
async def erase_me(request: HttpRequest, body: EraseMe) -> Status[ReceiptRef]:
    """Erases your account and everything of yours from every store, within a minute. It cannot be taken back."""
    try:
        user = await run_in_db(_confirmed, request, body)
        receipt = await erasure.erase_user(user)
    except User.DoesNotExist:  # asked twice at once
        raise unknown_account() from None
    await run_in_db(logout, request)
    return Status(202, ReceiptRef.to(receipt))


@router.post("/me/export", response={201: ExportOut}, auth=SESSION)
async def export_me(request: HttpRequest) -> Status[ExportOut]:
    """A link to everything of yours as a zip; it works once, for ten minutes, while you are signed in."""
    secret, expires_at = await run_in_db(export_link.issue, caller_of(request).user_id)
    return Status(201, ExportOut(url=reverse("api:get_export", args=[secret]), expires_at=expires_at))


@router.get("/exports/{secret}", response={200: None}, auth=SESSION, url_name="get_export", openapi_extra=ZIP)
async def get_export(request: HttpRequest, secret: str) -> StreamingHttpResponse:
    """The zip: conversations as JSON and Markdown, templates, account and keys, usage as CSV, cached answers."""
    user_id = caller_of(request).user_id
    await run_in_db(export_link.consume, user_id, secret)
    response = StreamingHttpResponse(export.zipped(user_id), content_type="application/zip")
    response["Content-Disposition"] = 'attachment; filename="rill-export.zip"'
    response["Cache-Control"] = "no-store"
    return response


def _confirmed(request: HttpRequest, body: EraseMe) -> User:
    """The signed-in person, once it is sure that it is. Raises NotConfirmed."""
    user = User.objects.get(pk=caller_of(request).user_id)
    address = brake.client_address(request)
    if not brake.may_try(address, user.username, is_known=True):
        raise ReplyRefused(
            "rate_limited", "Too many failed tries. Wait a few minutes.", 429, brake.WINDOW.total_seconds()
        )
    has_password = user.has_usable_password()
    if user.check_password(body.password) if has_password else body.name == user.username:
        brake.forget_failures(address, user.username)
        return user
    raise NotConfirmed("The password is wrong." if has_password else "This is not your user name.")


def _shown(row: ErasureReceipt) -> dict[str, Any]:
    nothing: dict[str, Any] = {"erased": None, "at": None}
    stores = [
        {"store": name, "kept": 0} | row.stores.get(name, nothing) for name in sorted(receipts.expected(row))
    ]
    return {
        "id": row.pk, "what": row.what, "requested_at": row.requested_at, "finished_at": row.finished_at,
        "stores": stores,
    }  # fmt: skip
