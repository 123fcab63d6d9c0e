"""A question in other words that keeps its answer: another version of it, with what followed it, and nothing is asked.

A message never changes, for caches, exports and complaints go by its words; so the version is made of copies. How the
copied answers were made stays with those they are of. Synchronous: callers go through `run_in_db`. Knows rows, no HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from chatsite.chat import branches
from chatsite.chat.models import LIVE_STATES, Conversation, Message, Role
from chatsite.chat.store import own_message, store_messages
from chatsite.chat.texts import checked_question
from chatsite.errors import InvalidRequest, SameIdOtherText, StillAnswering


@transaction.atomic
def reword(user_id: int, client_message_id: UUID, message: UUID, text: str) -> tuple[Message, bool]:
    """The version of the question that `message` is or answers, and whether it is new; its branch is shown from now on.

    Raises RequestError.
    """
    text = checked_question(text, settings.CONFIG.max_message_chars)
    conversation, found = own_message(user_id, message)
    question = found if found.role == Role.USER else found.parent
    if question is None:
        raise InvalidRequest("this message answers nothing.")
    earlier = conversation.messages.filter(client_message_id=client_message_id).first()
    if earlier is not None:
        if (earlier.role, earlier.parent_id, earlier.text) != (Role.USER, question.parent_id, text):
            raise SameIdOtherText("this client_message_id was used for another message.")
        return earlier, False
    followed = branches.onward(conversation, question)[1:]
    if any(row.state in LIVE_STATES for row in followed):
        raise StillAnswering("An answer to it is still being made; stop it or wait.")
    version = Message(
        conversation=conversation,
        parent_id=question.parent_id,
        role=Role.USER,
        text=text,
        client_message_id=client_message_id,
    )
    rows = [version, *_copies(followed, version)]
    store_messages(rows)
    Conversation.objects.filter(pk=conversation.pk).update(active_leaf=rows[-1])
    return version, True


def _copies(followed: Sequence[Message], above: Message) -> list[Message]:
    copies: list[Message] = []
    for row in followed:
        copy = Message(
            id=uuid4(),
            conversation_id=row.conversation_id,
            parent=above,
            role=row.role,
            text=row.text,
            token_ids=row.token_ids,
            tokenizer=row.tokenizer,
            state=row.state,
            created_at=row.created_at,
        )
        copies.append(copy)
        above = copy
    return copies
