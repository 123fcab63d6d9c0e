"""What the model is given: the branch that leads to a message, as segments with the ids the model made itself.

The ids let the engine reuse the kept KV without rendering old answers again. Synchronous and read-only.
Knows no template: the engine renders.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from uuid import UUID

from chatsite import statements
from chatsite.chat.models import Conversation, Message, Role
from chatsite.chat.store import Stored
from chatsite.chat.turn import CacheControl, Caller, StoredTurn, Turn
from inference.types import Sampling, Segment

# The messages from the root to one, in order. A message has its parent in its own conversation.
BRANCH = """
WITH RECURSIVE branch AS (
  SELECT id, parent_id, 1 AS height FROM chat_message WHERE id = %s AND conversation_id = %s
  UNION ALL
  SELECT above.id, above.parent_id, height + 1 FROM branch JOIN chat_message above ON above.id = branch.parent_id
)
SELECT role, text, token_ids, tokenizer FROM branch JOIN chat_message USING (id) ORDER BY height DESC
"""
SAMPLING_NAMES = frozenset(field.name for field in fields(Sampling))


def turn_of(caller: Caller, stored: Stored, *, is_refresh: bool = False) -> Turn:
    """The turn of a stored question. A refresh writes to the cache and does not read it; temporary chats and
    answers that go on do neither."""
    conversation = Conversation.objects.get(pk=stored.conversation)
    begun = _begun(stored.answer) if stored.begun else None
    is_kept = not conversation.is_temporary and begun is None
    return Turn(
        caller=caller,
        generation=stored.generation,
        segments=segments_of(conversation, stored.user_message),
        model=conversation.model,
        sampling=sampling_of(conversation.parameters),
        conversation=str(conversation.pk),
        cache=CacheControl(may_read=is_kept and not is_refresh, may_store=is_kept),
        stored=StoredTurn(stored.conversation, stored.user_message, stored.answer),
        begun=begun,
    )


def _begun(answer: UUID) -> Segment:
    """What a new answer begins with, which goes on where another one ended."""
    row = Message.objects.get(pk=answer)
    return Segment(row.role, row.text, tuple(row.token_ids), row.tokenizer)


def segments_of(conversation: Conversation, leaf: UUID | None) -> tuple[Segment, ...]:
    """System prompt and the messages from the root to `leaf`; answers without any text are left out."""
    segments = [Segment("system", conversation.system_prompt)] if conversation.system_prompt else []
    branch = statements.every(BRANCH, [leaf, conversation.pk])
    segments.extend(
        Segment(role, text, tuple(ids), tokenizer)
        for role, text, ids, tokenizer in branch
        if text or role == Role.USER
    )
    return tuple(segments)


def sampling_of(parameters: dict[str, Any]) -> Sampling:
    """A conversation's stored parameters; the door that stored them has checked them."""
    given = {name: value for name, value in parameters.items() if name in SAMPLING_NAMES}
    if "stop" in given:
        given["stop"] = tuple(given["stop"])
    return Sampling(**given)
