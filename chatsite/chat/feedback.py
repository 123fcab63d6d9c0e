"""What people say about an answer: a thumb up or down, or that they want another one.

The semantic cache is told when the answer was one of its own. Knows rows and `semcache.service`; knows no door.
"""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import Error as DatabaseError

from chatsite.chat.models import Feedback, Generation, Message, Origin, Role
from chatsite.chat.texts import checked
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest, NotFound
from semcache import service
from semcache.service import Complaint, Served

logger = logging.getLogger(__name__)


async def rate(caller: Caller, message: UUID, verdict: str, reason: str = "") -> None:
    """Keeps the caller's latest word on an answer of theirs. Raises NotFound, or RequestError for what is no answer."""
    await run_in_db(_keep, caller.user_id, message, verdict, reason)
    served = await run_in_db(_served, caller, message)
    if served is None:
        return
    if verdict == Feedback.Verdict.DOWN:
        await service.complain(served, Complaint.THUMBS_DOWN)
    else:
        await service.approve(served)


async def take_back(caller: Caller, message: UUID) -> None:
    """The caller says nothing about this message any more. Raises NotFound."""
    await run_in_db(_drop, caller.user_id, message)


async def asked_again(caller: Caller, message: UUID) -> None:
    """Another answer was asked for beside this one. Never costs it: a cache that is away is told nothing."""
    try:
        served = await run_in_db(_served, caller, message)
        if served is not None:
            await service.complain(served, Complaint.ASKED_FRESH)
    except DatabaseError as error:
        logger.warning("the cache was not told that another answer was wanted: %s", error)


def _keep(user_id: int, message: UUID, verdict: str, reason: str) -> None:
    row = Message.objects.filter(pk=message, conversation__owner=user_id).first()
    if row is None:
        raise NotFound("there is no such message.")
    if row.role != Role.ASSISTANT:
        raise InvalidRequest("only answers are rated.")
    said = {"verdict": verdict, "reason": checked(reason, "reason")}
    Feedback.objects.update_or_create(message=row, user_id=user_id, defaults=said)


def _drop(user_id: int, message: UUID) -> None:
    if not Message.objects.filter(pk=message, conversation__owner=user_id).exists():
        raise NotFound("there is no such message.")
    Feedback.objects.filter(message=message, user=user_id).delete()


def _served(caller: Caller, message: UUID) -> Served | None:
    """The stored answer that this message repeats, with the question it was given to."""
    rows = Generation.objects.select_related("message__parent")
    row = rows.filter(message=message, user=caller.user_id, cache_entry__isnull=False).first()
    if row is None or row.cache_entry is None or row.message is None or row.message.parent is None:
        return None
    return Served(
        row.cache_entry,
        asked=row.message.parent.text,
        tenant=caller.tenant,
        owner=caller.owner,
        generation=row.pk,
        served_at=row.created_at,
        is_exact=row.origin == Origin.EXACT,
    )
