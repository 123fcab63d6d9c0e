"""Thumbs: a door to `chatsite.chat.feedback`."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status

from chatsite.accounts.auth import caller_of
from chatsite.chat import feedback
from chatsite.chat.schemas.messages import FeedbackIn

router = Router(tags=["feedback"])


@router.put("/messages/{uuid:message}/feedback", response={204: None})
async def rate_message(request: HttpRequest, message: UUID, body: FeedbackIn) -> Status[None]:
    """A thumb up or down on an answer of yours; the latest one counts.

    A thumb down on an answer of the cache keeps it from answering that question again.
    """
    await feedback.rate(caller_of(request), message, body.verdict, body.reason)
    return Status(204, None)


@router.delete("/messages/{uuid:message}/feedback", response={204: None})
async def unrate_message(request: HttpRequest, message: UUID) -> Status[None]:
    """Takes your thumb back, if there is one. What the cache was told stays told."""
    await feedback.take_back(caller_of(request), message)
    return Status(204, None)
