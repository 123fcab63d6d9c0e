"""One action on many conversations: on all that are named, or on none where one is not the caller's.

Knows rows and erasure; knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from django.db import transaction

from chatsite.chat import erasure
from chatsite.chat.models import Conversation
from chatsite.chat.schemas.conversations import MAX_TAGS
from chatsite.chat.store import all_locked
from chatsite.chat.texts import checked
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import InvalidRequest

COLUMNS = {
    "archive": {"is_archived": True},
    "unarchive": {"is_archived": False},
    "pin": {"is_pinned": True},
    "unpin": {"is_pinned": False},
}


async def apply(caller: Caller, action: str, ids: Sequence[UUID], tag: str | None) -> tuple[int, UUID | None]:
    """How many conversations there were, and the receipt of an erasure.

    Raises NotFound and InvalidRequest, with nothing changed.
    """
    wanted = sorted(set(ids))
    receipt = None
    if action == "delete":
        receipt = await erasure.erase_many(caller, wanted)
    elif action in COLUMNS:
        await run_in_db(_update, caller.user_id, wanted, COLUMNS[action])
    elif tag is None:
        raise InvalidRequest(f"to {action}, a tag must be given.")
    else:
        await run_in_db(
            _retag, caller.user_id, wanted, _with if action == "tag" else _without, checked(tag, "tag")
        )
    return len(wanted), receipt


@transaction.atomic
def _update(user_id: int, ids: Sequence[UUID], columns: dict[str, bool]) -> None:
    all_locked(user_id, ids)
    Conversation.objects.filter(pk__in=ids).update(**columns)


@transaction.atomic
def _retag(
    user_id: int, ids: Sequence[UUID], changed: Callable[[list[str], str], list[str]], tag: str
) -> None:
    rows = all_locked(user_id, ids)
    for row in rows:
        row.tags = changed(row.tags, tag)
        if len(row.tags) > MAX_TAGS:
            raise InvalidRequest(
                f"a conversation has at most {MAX_TAGS} tags, and {row.pk} has them already."
            )
    Conversation.objects.bulk_update(rows, ["tags"])


def _with(tags: list[str], tag: str) -> list[str]:
    return tags if tag in tags else [*tags, tag]


def _without(tags: list[str], tag: str) -> list[str]:
    return [other for other in tags if other != tag]
