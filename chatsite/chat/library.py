"""What a person keeps: the list of conversations, new ones, and changes.

Synchronous unless marked; callers go through `run_in_db`. Knows rows, no HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from chatsite.chat.following import ended_of
from chatsite.chat.models import FINAL_STATES, Conversation, Generation, Message, Role
from chatsite.chat.store import locked
from chatsite.chat.terms import found_in
from chatsite.chat.texts import checked
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest, NotFound

PAGE = 50
# The page erases a temporary chat when it is closed; one whose page vanished goes after this time.
TEMPORARY_LIFE = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list shows: conversations with all words of `query` in title or messages, with `tag`, archived or not."""

    query: str = ""
    tag: str = ""
    is_archived: bool = False


def conversations(user_id: int, wanted: Wanted, cursor: str) -> tuple[list[Conversation], str | None]:
    """A page of the list, pinned ones first, then the latest; and the cursor of the next page."""
    rows = Conversation.objects.filter(owner=user_id, is_temporary=False, is_archived=wanted.is_archived)
    if query := checked(wanted.query, "q").strip():
        rows = rows.filter(_found(user_id, query))
    if wanted.tag:
        rows = rows.filter(tags__contains=[wanted.tag])
    if cursor:
        rows = _after(rows, cursor)
    found = list(rows.order_by("-is_pinned", "-updated_at", "-id")[: PAGE + 1])
    page = found[:PAGE]
    return page, _cursor(page[-1]) if len(found) > PAGE else None


def _found(user_id: int, query: str) -> Q:
    """Conversations whose title has all words, or one of whose finished messages has."""
    mine = Message.objects.filter(conversation__owner=user_id, state__in=FINAL_STATES)
    return Q(*found_in("title", query)) | Q(
        pk__in=mine.filter(*found_in("text", query)).values("conversation")
    )


def owned(user_id: int, conversation: UUID) -> Conversation:
    """The user's conversation. Raises NotFound, also for somebody else's."""
    row = Conversation.objects.filter(pk=conversation, owner=user_id).first()
    if row is None:
        raise NotFound("there is no such conversation.")
    return row


def shown(user_id: int, conversation: UUID) -> Conversation:
    """The user's conversation with the number of its messages. Raises NotFound."""
    row = owned(user_id, conversation)
    row.num_messages = row.messages.count()  # type: ignore[attr-defined]
    return row


def make(user_id: int, columns: dict[str, Any]) -> Conversation:
    """A new conversation of the user's."""
    return shown(user_id, Conversation.objects.create(owner_id=user_id, **_kept(columns)).pk)


@transaction.atomic
def change(user_id: int, conversation: UUID, changes: dict[str, Any]) -> Conversation:
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


def _cursor(row: Conversation) -> str:
    return f"{int(row.is_pinned)}_{row.updated_at.isoformat()}_{row.pk}"


def _after(rows: QuerySet[Conversation], cursor: str) -> QuerySet[Conversation]:
    try:
        pinned, updated_at, pk = cursor.split("_")
        # In UTC, because an offset may have fractions that PostgreSQL does not read.
        moment = datetime.fromisoformat(updated_at).astimezone(UTC)
        is_pinned, last = pinned == "1", UUID(pk)
    except (ValueError, OverflowError):
        raise InvalidRequest("cursor is not one that this list gave.") from None
    older = Q(updated_at__lt=moment) | Q(updated_at=moment, id__lt=last)
    same_kind = Q(is_pinned=is_pinned) & older
    return rows.filter(same_kind | Q(is_pinned=False)) if is_pinned else rows.filter(same_kind)
