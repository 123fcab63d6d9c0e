"""What the model is given: the branch that leads to a message, as segments with the ids the model made itself.

The ids let the engine reuse the kept KV without rendering old answers again. Synchronous and read-only.
Knows no template: the engine renders.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from uuid import UUID

from chatsite.chat.models import Conversation, Message, Role
from chatsite.chat.store import Stored
from chatsite.chat.turn import CacheControl, Caller, StoredTurn, Turn
from inference.types import Sampling, Segment

SAMPLING_NAMES = frozenset(field.name for field in fields(Sampling))


def turn_of(caller: Caller, stored: Stored, *, is_refresh: bool = False) -> Turn:
    """The turn of a stored question. A refresh writes to the cache and does not read it; temporary chats and
    answers that go on do neither."""
    conversation = Conversation.objects.get(pk=stored.conversation)
    begun = _begun(stored.answer)
    is_kept = not conversation.is_temporary and begun is None
    return Turn(
        caller=caller,
        generation=stored.generation,
        segments=segments_of(conversation, stored.user_message),
        sampling=sampling_of(conversation.parameters),
        conversation=str(conversation.pk),
        cache=CacheControl(may_read=is_kept and not is_refresh, may_store=is_kept),
        stored=StoredTurn(stored.conversation, stored.user_message, stored.answer),
        begun=begun,
    )


def _begun(answer: UUID) -> Segment | None:
    """What a new answer begins with, when it goes on where another one ended."""
    row = Message.objects.get(pk=answer)
    return _segment(row) if row.text else None


def _segment(message: Message) -> Segment:
    return Segment(message.role, message.text, tuple(message.token_ids), message.tokenizer)


def segments_of(conversation: Conversation, leaf: UUID | None) -> tuple[Segment, ...]:
    """System prompt and the messages from the root to `leaf`; answers without any text are left out."""
    segments = [Segment("system", conversation.system_prompt)] if conversation.system_prompt else []
    segments.extend(
        _segment(message)
        for message in branch_of(conversation, leaf)
        if message.text or message.role == Role.USER
    )
    return tuple(segments)


def branch_of(conversation: Conversation, leaf: UUID | None) -> list[Message]:
    """The messages from the root to `leaf`, in order."""
    parents = dict(conversation.messages.values_list("pk", "parent"))
    path: list[UUID] = []
    while leaf is not None:
        path.append(leaf)
        leaf = parents[leaf]
    found = conversation.messages.in_bulk(path)
    return [found[pk] for pk in reversed(path)]


def sampling_of(parameters: dict[str, Any]) -> Sampling:
    """A conversation's stored parameters; the door that stored them has checked them."""
    given = {name: value for name, value in parameters.items() if name in SAMPLING_NAMES}
    if "stop" in given:
        given["stop"] = tuple(given["stop"])
    return Sampling(**given)
