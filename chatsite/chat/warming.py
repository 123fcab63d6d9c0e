"""Preparing the engine for what somebody is about to ask: the conversation's history is read into KV beforehand.

A convenience: whatever goes wrong is not the user's concern. Temporary chats are never warmed.
"""

from __future__ import annotations

import logging
from uuid import UUID

from chatsite.chat import prompt
from chatsite.chat.models import LIVE_STATES, Conversation
from chatsite.chat.texts import checked
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.engines import engines
from chatsite.errors import NotFound
from inference.errors import EngineError
from inference.types import Owner, Segment

logger = logging.getLogger(__name__)


async def warm(caller: Caller, conversation: UUID, draft: str = "") -> None:
    """Asks the engine to read the active branch, and behind it the beginning of the next question.

    Raises NotFound and InvalidText. What follows the draft's end in the prompt is read in vain; the rest is reused.
    """
    draft = checked(draft, "draft")
    model, segments = await run_in_db(_history, caller.user_id, conversation)
    if not segments:
        return
    if draft:
        segments += (Segment("user", draft),)
    try:
        owner = Owner(caller.tenant, caller.owner, str(conversation))
        best, *_ = await engines().ranked(model, owner, segments)
        await best.client.warm(segments, owner)
    except EngineError as error:
        logger.info("conversation %s was not warmed: %s", conversation, error.message)


def _history(user_id: int, conversation: UUID) -> tuple[str, tuple[Segment, ...]]:
    """The model and the active branch; nothing of temporary chats and while an answer is being made."""
    row = Conversation.objects.select_related("active_leaf").filter(pk=conversation, owner=user_id).first()
    if row is None:
        raise NotFound("there is no such conversation.")
    if row.is_temporary or (row.active_leaf is not None and row.active_leaf.state in LIVE_STATES):
        return row.model, ()
    return row.model, prompt.segments_of(row, row.active_leaf_id)
