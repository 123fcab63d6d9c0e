"""Reading a conversation in pages: one branch from its root on, or all messages in the order of their making.

Only ids are read whole; texts are read for the page. Synchronous and read-only. Knows rows, no HTTP.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.db.models import OuterRef, Subquery

from chatsite.chat.library import owned
from chatsite.chat.models import Conversation, Feedback, Message
from chatsite.errors import NotFound

Side = Literal["before", "after", "around"]


@dataclass(frozen=True, slots=True)
class Place:
    """Which messages: on which side of which one. The message itself is part of what is around it."""

    side: Side
    message: UUID


@dataclass(frozen=True, slots=True)
class Page:
    """Neighbours, oldest first; `before` and `after` tell that there are others on that side."""

    messages: list[Message]
    before: UUID | None
    after: UUID | None


class Tree:
    """The messages of one conversation as ids: who hangs under whom, in the order of their making."""

    def __init__(self, conversation: Conversation) -> None:
        rows = conversation.messages.order_by("created_at", "id").values_list("pk", "parent")
        self.parents: dict[UUID, UUID | None] = dict(rows)
        self._children: dict[UUID | None, list[UUID]] = defaultdict(list)
        for message, parent in self.parents.items():
            self._children[parent].append(message)

    def variants(self, message: UUID) -> list[UUID]:
        """All messages under the same parent, this one among them."""
        return self._children[self.parents[message]]

    def through(self, message: UUID) -> list[UUID]:
        """The branch from the root through `message` to the latest message below it. Raises NotFound."""
        if message not in self.parents:
            raise NotFound("there is no such message.")
        above: list[UUID] = []
        at: UUID | None = message
        while at is not None:
            above.append(at)
            at = self.parents[at]
        branch = above[::-1]
        while below := self._children.get(branch[-1]):
            branch.append(below[-1])
        return branch


def read(user_id: int, conversation: UUID, branch: str, place: Place | None, limit: int) -> Page:
    """A page of at most `limit` messages: without a place the last one.

    `branch` is `active`, `all`, or the id of a message that the branch goes through; a message that is read around
    and is not on the active branch chooses its own. Raises NotFound.
    """
    row = owned(user_id, conversation)
    tree = Tree(row)
    line = _line(row, tree, branch, place)
    start, end = _window(line, place, limit)
    page = line[start:end]
    return Page(
        _loaded(row, tree, user_id, page),
        before=page[0] if page and start > 0 else None,
        after=page[-1] if page and end < len(line) else None,
    )


def active(row: Conversation) -> list[Message]:
    """The branch that is shown, whole."""
    ids = _active(row, Tree(row))
    rows = row.messages.in_bulk(ids)
    return [rows[pk] for pk in ids]


def onward(row: Conversation, message: Message) -> list[Message]:
    """`message` and what follows it: on the branch that is shown, else down to the latest."""
    tree = Tree(row)
    line = _active(row, tree)
    if message.pk not in line:
        line = tree.through(message.pk)
    ids = line[line.index(message.pk) :]
    rows = row.messages.in_bulk(ids)
    return [rows[pk] for pk in ids]


def messages_of(user_id: int, conversation: UUID, ids: Sequence[UUID]) -> list[Message]:
    """These messages as the API shows them. Raises NotFound."""
    row = owned(user_id, conversation)
    return _loaded(row, Tree(row), user_id, ids)


def _line(row: Conversation, tree: Tree, branch: str, place: Place | None) -> Sequence[UUID]:
    if branch == "all":
        return list(tree.parents)
    if branch != "active":
        return tree.through(UUID(branch))
    active = _active(row, tree)
    if place is not None and place.side == "around" and place.message not in active:
        return tree.through(place.message)
    return active


def _active(row: Conversation, tree: Tree) -> list[UUID]:
    """The branch that is shown; where none is named, that of the latest message."""
    latest = row.active_leaf_id or next(reversed(tree.parents), None)
    if latest is None:
        return []
    branch = tree.through(latest)
    return branch[: branch.index(latest) + 1]


def _window(line: Sequence[UUID], place: Place | None, limit: int) -> tuple[int, int]:
    if place is None:
        return max(0, len(line) - limit), len(line)
    if place.message not in line:
        raise NotFound("there is no such message.")
    at = line.index(place.message)
    if place.side == "before":
        return max(0, at - limit), at
    if place.side == "after":
        return at + 1, min(len(line), at + 1 + limit)
    start = max(0, min(at - limit // 2, len(line) - limit))
    return start, min(len(line), start + limit)


def _loaded(row: Conversation, tree: Tree, user_id: int, ids: Sequence[UUID]) -> list[Message]:
    """In the order of `ids`, with their making, their variants and what the reader said of them."""
    said = Feedback.objects.filter(message=OuterRef("pk"), user=user_id).values("verdict")
    rows = row.messages.select_related("generation").annotate(verdict=Subquery(said)).in_bulk(list(ids))
    for message in rows.values():
        message.variants = tree.variants(message.pk)  # type: ignore[attr-defined]
    return [rows[pk] for pk in ids]
