"""What a person keeps: new conversations, and changes of them. The list is `listing`'s.

Synchronous unless marked; callers go through `run_in_db`. Knows rows, no HTTP.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from chatsite.chat.following import ended_of
from chatsite.chat.listing import Listed, answering, told
from chatsite.chat.models import Conversation, Generation, Role
from chatsite.chat.store import begun_by, locked
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest, NotFound

# The page erases a temporary chat when it is closed; one whose page vanished goes after this time.
TEMPORARY_LIFE = timedelta(hours=24)


def owned(user_id: int, conversation: UUID) -> Conversation:
    """The user's conversation. Raises NotFound, also for somebody else's."""
    row = Conversation.objects.filter(pk=conversation, owner=user_id).first()
    if row is None:
        raise NotFound("there is no such conversation.")
    return row


class Shown(Listed, frozen=True):
    """A conversation without its messages, as the API has it."""

    is_temporary: bool
    system_prompt: str
    parameters: dict[str, Any]
    model: str
    active_leaf_id: UUID | None
    num_messages: int


def shown(user_id: int, conversation: UUID) -> Shown:
    """The user's conversation as it is now. Raises NotFound."""
    row = owned(user_id, conversation)
    is_answering = conversation in answering(user_id)
    return told(Shown, row, is_answering=is_answering, num_messages=row.messages.count())


def make(user_id: int, columns: dict[str, Any], client_message_id: UUID | None = None) -> tuple[Shown, bool]:
    """A conversation of the user's, and whether it is new: the one for a first message is made once."""
    columns = _kept(columns) | {"owner_id": user_id}
    if client_message_id is None:
        return shown(user_id, Conversation.objects.create(**columns).pk), True
    name = begun_by(user_id, client_message_id)
    _, is_new = Conversation.objects.get_or_create(pk=name, defaults=columns)
    return shown(user_id, name), is_new


@transaction.atomic
def change(user_id: int, conversation: UUID, changes: dict[str, Any]) -> Shown:
    """Changes the given fields. Raises NotFound and InvalidRequest."""
    row = locked(user_id, conversation)
    if "active_leaf" in changes:
        changes["active_leaf_id"] = _leaf(row, changes.pop("active_leaf"))
    for name, value in _kept(changes).items():
        setattr(row, name, value)
    row.save(update_fields=[*changes])
    return shown(user_id, conversation)


def _kept(columns: dict[str, Any]) -> dict[str, Any]:
    """As they are stored: each tag once, without blanks around it."""
    if "tags" not in columns:
        return columns
    tags = [tag.strip() for tag in columns["tags"]]
    if not all(tags):
        raise InvalidRequest("a tag is empty.")
    return columns | {"tags": list(dict.fromkeys(tags))}


def _leaf(row: Conversation, message: UUID) -> UUID:
    """An answer of this tree behind which nothing was said yet."""
    answers = row.messages.filter(pk=message, role=Role.ASSISTANT)
    if not answers.exists():
        raise InvalidRequest("active_leaf is no answer of this conversation.")
    if answers.filter(children__isnull=False).exists():
        raise InvalidRequest("active_leaf is no leaf: the conversation goes on below it.")
    return message


def figures(row: Generation) -> dict[str, Any]:
    """How an answer was made, by the names of the API."""
    ended = ended_of(row)
    return {
        "id": row.pk,
        "state": row.state,
        "finish_reason": row.finish_reason,
        "origin": row.origin,
        "model": row.model,
        "cache_age_s": row.cache_age_s,
        "cache_is_stale": row.cache_is_stale,
        "prompt_tokens": row.prompt_tokens,
        "reused_tokens": ended.counts.reused_tokens,
        "trimmed_messages": ended.counts.trimmed_messages,
        "prefilled_tokens": row.prefilled_tokens,
        "generated_tokens": row.generated_tokens,
        "queue_ms": row.queue_ms,
        "prefill_ms": row.prefill_ms,
        "decode_ms": row.decode_ms,
        "ttft_ms": row.ttft_ms,
        "error_code": row.error_code,
        "is_retryable": ended.is_retryable,
    }


async def forgotten_temporary(limit: int) -> list[Conversation]:
    """Temporary conversations whose page did not come back to erase them."""
    return await run_in_db(_forgotten_temporary, limit)


def _forgotten_temporary(limit: int) -> list[Conversation]:
    old = Conversation.objects.filter(is_temporary=True, updated_at__lt=Now() - TEMPORARY_LIFE)
    return list(old.select_related("owner")[:limit])
