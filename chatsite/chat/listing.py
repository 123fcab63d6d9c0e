"""The list of a person's conversations: found, paged, and told of one by one.

Temporary ones are in no list. Synchronous: callers go through `run_in_db`. Knows rows, no HTTP.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from django.db.models import Count, F, Func, Q, QuerySet

from chatsite import statements
from chatsite.chat.models import FINAL_STATES, LIVE_STATES, Conversation, Message
from chatsite.chat.terms import found_in
from chatsite.chat.texts import checked
from chatsite.errors import InvalidRequest

PAGE = 50
# To say "more than a thousand" no more than that has to be counted.
MOST_COUNTED = 1000
MOST_TAGS = 200
# Read by every tab that is told of an answer's beginning and end. In the order of `Listed`.
LISTED = """
SELECT id, title, tags, created_at, updated_at, is_pinned, is_archived,
       id IN (SELECT message.conversation_id FROM chat_generation live JOIN chat_message message
                  ON message.id = live.message_id WHERE live.user_id = %(user)s AND live.state = ANY(%(live)s))
  FROM chat_conversation WHERE owner_id = %(user)s AND NOT is_temporary AND id = ANY(%(ids)s)
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list shows: conversations with all words of `query` in title or messages, with `tag`, archived or not."""

    query: str = ""
    tag: str = ""
    is_archived: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Neighbours in the list, the cursor of what follows, and of a search's first page how many there are."""

    items: list[Listed]
    following: str | None
    num_found: int | None


class Listed(msgspec.Struct, frozen=True):
    """One line of the list, as the API has it."""

    id: UUID
    title: str
    tags: Sequence[str]
    created_at: datetime
    updated_at: datetime
    is_pinned: bool
    is_archived: bool
    is_answering: bool


Told = TypeVar("Told", bound=Listed)


def conversations(user_id: int, wanted: Wanted, cursor: str) -> Page:
    """A page of the list, pinned ones first, then the latest."""
    rows = Conversation.objects.filter(owner=user_id, is_temporary=False, is_archived=wanted.is_archived)
    query = checked(wanted.query, "q").strip()
    if query:
        rows = rows.filter(_found(user_id, query))
    if wanted.tag:
        rows = rows.filter(tags__contains=[wanted.tag])
    num_found = rows[:MOST_COUNTED].count() if query and not cursor else None
    if cursor:
        rows = _after(rows, cursor)
    found = list(rows.order_by("-is_pinned", "-updated_at", "-id")[: PAGE + 1])
    page = found[:PAGE]
    return Page(_lines(user_id, page), _cursor(page[-1]) if len(found) > PAGE else None, num_found)


def listed(user_id: int, ids: Collection[UUID]) -> list[Listed]:
    """Those of the user's conversations among `ids` that are in lists."""
    wanted = {"user": user_id, "ids": list(ids), "live": list(LIVE_STATES)}
    return [Listed(*row) for row in statements.every(LISTED, wanted)]


def answering(user_id: int) -> set[UUID]:
    """The user's conversations in which an answer is being made."""
    live = Message.objects.filter(generation__user=user_id, generation__state__in=LIVE_STATES)
    return set(live.values_list("conversation", flat=True))


def tags_of(user_id: int) -> list[dict[str, Any]]:
    """Every tag with the number of conversations that have it, the most used first."""
    rows = Conversation.objects.filter(owner=user_id, is_temporary=False)
    each = rows.annotate(tag=Func(F("tags"), function="unnest")).values("tag")
    counted = each.annotate(num_conversations=Count("pk")).order_by("-num_conversations", "tag")
    return [{"tag": row["tag"], "num_conversations": row["num_conversations"]} for row in counted[:MOST_TAGS]]


def told(form: type[Told], row: Conversation, **beside: Any) -> Told:
    """What the API tells of a conversation: its columns, and what is known `beside` them."""
    columns = (name for name in form.__struct_fields__ if name not in beside)
    return form(**{name: getattr(row, name) for name in columns}, **beside)


def _lines(user_id: int, rows: Iterable[Conversation]) -> list[Listed]:
    live = answering(user_id)
    return [told(Listed, row, is_answering=row.pk in live) for row in rows]


def _found(user_id: int, query: str) -> Q:
    """Conversations whose title has all words, or one of whose finished messages has."""
    mine = Message.objects.filter(conversation__owner=user_id, state__in=FINAL_STATES)
    return Q(*found_in("title", query)) | Q(
        pk__in=mine.filter(*found_in("text", query)).values("conversation")
    )


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
