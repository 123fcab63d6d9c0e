"""Between rows and the values of a file: a person's conversations as they are stored, and new ones from a file.

Synchronous: callers go through `run_in_db`. Knows rows; knows no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import OuterRef, Subquery

from chatsite.chat.library import owned
from chatsite.chat.models import FINAL_STATES, Conversation, Feedback, Generation, Message, Role, State
from chatsite.chat.store import store_messages
from chatsite.chat.transfer.form import Ended, Made, Said, Talk, Turn

BATCH = 500


def ids_of(user_id: int) -> list[UUID]:
    """What is exported of a person: everything but temporary chats, oldest first."""
    rows = Conversation.objects.filter(owner=user_id, is_temporary=False)
    return list(rows.order_by("created_at", "pk").values_list("pk", flat=True))


def those_of(user_id: int, conversations: Sequence[UUID]) -> list[UUID]:
    """Those of the named conversations that are the user's, each once, in the order in which they are named."""
    theirs = set(
        Conversation.objects.filter(owner=user_id, pk__in=conversations).values_list("pk", flat=True)
    )
    return [conversation for conversation in dict.fromkeys(conversations) if conversation in theirs]


def load(user_id: int, conversation: UUID) -> Talk:
    """One conversation with all its branches. Raises NotFound."""
    row = owned(user_id, conversation)
    said = Feedback.objects.filter(message=OuterRef("pk"), user=user_id)
    messages = row.messages.select_related("generation").annotate(
        verdict=Subquery(said.values("verdict")), reason=Subquery(said.values("reason"))
    )
    rows = list(_parents_first(messages.order_by("created_at", "pk")))
    numbers = {message.pk: number for number, message in enumerate(rows, 1)}
    return Talk(
        title=row.title,
        created_at=row.created_at,
        updated_at=row.updated_at,
        messages=[_turn(message, numbers) for message in rows],
        active=numbers.get(cast("UUID", row.active_leaf_id)),
        system_prompt=row.system_prompt,
        parameters=row.parameters,
        model=row.model,
        tags=row.tags,
        is_pinned=row.is_pinned,
        is_archived=row.is_archived,
    )


@transaction.atomic
def store(user_id: int, talks: Sequence[Talk]) -> list[UUID]:
    """New conversations of the user's, all of them or none; their ids."""
    conversations: list[Conversation] = []
    messages: list[Message] = []
    made: list[Generation] = []
    said: list[Feedback] = []
    for talk in talks:
        # In order, because messages of one moment are shown in the order of their ids.
        ids = dict(zip((turn.number for turn in talk.messages), _ordered_ids(talk), strict=True))
        conversation = _conversation(user_id, talk, ids)
        conversations.append(conversation)
        for turn in talk.messages:
            messages.append(_message(conversation, turn, ids))
            if turn.made:
                made.append(_generation(user_id, turn, turn.made, ids))
            if turn.feedback:
                said.append(_feedback(user_id, turn, turn.feedback, ids))
    Conversation.objects.bulk_create(conversations, BATCH)
    store_messages(messages)
    Generation.objects.bulk_create(made, BATCH)
    Feedback.objects.bulk_create(said, BATCH)
    return [conversation.pk for conversation in conversations]


def _ordered_ids(talk: Talk) -> list[UUID]:
    return sorted(uuid4() for _ in talk.messages)


def _parents_first(messages: Iterable[Message]) -> Iterator[Message]:
    """In the order of their making, as far as no message comes before its parent."""
    waiting: dict[UUID, list[Message]] = {}
    known: set[UUID | None] = {None}
    for message in messages:
        if message.parent_id not in known:
            waiting.setdefault(cast("UUID", message.parent_id), []).append(message)
            continue
        ready = [message]
        while ready:
            at = ready.pop()
            known.add(at.pk)
            yield at
            ready += reversed(waiting.pop(at.pk, []))


def _turn(message: Message, numbers: dict[UUID, int]) -> Turn:
    generation = getattr(message, "generation", None)
    verdict, reason = message.verdict, message.reason  # type: ignore[attr-defined]
    is_answer = message.role == Role.ASSISTANT
    return Turn(
        number=numbers[message.pk],
        parent=numbers[message.parent_id] if message.parent_id else None,
        role="assistant" if is_answer else "user",
        text=message.text,
        created_at=message.created_at,
        state=_ended(message.state),
        made=Made(generation.model, generation.origin, generation.finish_reason) if generation else None,
        feedback=Said(verdict, reason) if verdict else None,
    )


def _ended(state: str) -> Ended:
    """What is still being made leaves as far as it is written, and cannot go on elsewhere."""
    return cast("Ended", state if state in FINAL_STATES else State.INTERRUPTED.value)


def _conversation(user_id: int, talk: Talk, ids: dict[int, UUID]) -> Conversation:
    return Conversation(
        owner_id=user_id,
        title=talk.title,
        system_prompt=talk.system_prompt,
        parameters=talk.parameters,
        model=talk.model,
        tags=talk.tags,
        is_pinned=talk.is_pinned,
        is_archived=talk.is_archived,
        created_at=talk.created_at,
        updated_at=talk.updated_at,
        active_leaf_id=ids[talk.active] if talk.active else None,
    )


def _message(row: Conversation, turn: Turn, ids: dict[int, UUID]) -> Message:
    return Message(
        id=ids[turn.number],
        conversation=row,
        parent_id=ids[turn.parent] if turn.parent else None,
        role=turn.role,
        text=turn.text,
        state=turn.state,
        created_at=turn.created_at,
    )


def _generation(user_id: int, turn: Turn, made: Made, ids: dict[int, UUID]) -> Generation:
    """How it was made, as the file says. It was not made here: it costs nothing and counts nowhere."""
    return Generation(
        message_id=ids[turn.number],
        user_id=user_id,
        model=made.model,
        origin=made.origin,
        finish_reason=made.finish_reason,
        state=turn.state,
        created_at=turn.created_at,
        deadline_at=turn.created_at,
        finished_at=turn.created_at,
    )


def _feedback(user_id: int, turn: Turn, said: Said, ids: dict[int, UUID]) -> Feedback:
    """The cache is told nothing: it was not its answer."""
    return Feedback(message_id=ids[turn.number], user_id=user_id, verdict=said.verdict, reason=said.reason)
