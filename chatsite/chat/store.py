"""Acknowledged means durable: a question, its queued answer and its generation are stored in one transaction.

The conversation's row lock puts concurrent sends in one order; `client_message_id` makes repeats harmless. The
question is counted against the caller's quotas in the same transaction.
Synchronous: callers go through `run_in_db`. Knows no engine and no transport.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4, uuid5

from django.conf import settings
from django.db import transaction

from chatsite import statements
from chatsite.accounts.quotas import admission
from chatsite.chat import bounds, generations
from chatsite.chat.models import Conversation, Generation, Message, Role, State
from chatsite.chat.texts import checked_question
from chatsite.chat.turn import Caller
from chatsite.errors import InvalidRequest, NotContinuable, NotFound, SameIdOtherText
from chatsite.served import Served
from inference.types import EngineInfo, FinishReason

TITLE_CHARS = 60
# Texts are indexed while they are stored, and a statement has five seconds.
BATCH = 500
BATCH_CHARS = 100_000
INSERT_CONVERSATION = statements.Insert(Conversation, on_conflict="ON CONFLICT DO NOTHING")
INSERT_MESSAGE = statements.Insert(Message)
EARLIER = "SELECT id FROM chat_message WHERE conversation_id = %s AND client_message_id = %s"
ROLE = "SELECT role FROM chat_message WHERE conversation_id = %s AND id = %s"
LEAD_TO = """
UPDATE chat_conversation SET active_leaf_id = %s, title = %s, model = %s, updated_at = statement_timestamp()
 WHERE id = %s
"""
NOTHING_SERVED = Served()
# A first message names no conversation; the same message sent again must find the one it made.
_CONVERSATION_NAMES = UUID("6f2f3c5e-3f0d-4f0e-9a53-9d9a3f4f4b1e")


@dataclass(frozen=True, slots=True)
class Question:
    """A message somebody sends. `parent` is the answer it follows; `is_branch` keeps it on purpose (an edit)."""

    client_message_id: UUID
    text: str
    conversation: UUID | None = None
    parent: UUID | None = None
    is_branch: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """The committed rows of a question. `is_new` is False for a repeat, whose answer is being made already."""

    generation: UUID
    conversation: UUID
    user_message: UUID
    answer: UUID
    parent: UUID | None
    title: str
    is_new: bool
    # What the answer begins with, when it goes on where another one ended.
    begun: str = ""


def store_question(caller: Caller, question: Question, known: Served = NOTHING_SERVED) -> Stored:
    """Stores a question with its queued answer, or finds those of an earlier copy.

    Raises RequestError, and ReplyRefused by the caller's quotas; then nothing is stored.
    """
    text = checked_question(question.text, settings.CONFIG.max_message_chars)
    with transaction.atomic():
        admission.one_at_a_time(caller.user_id)
        conversation, earlier = _place_of(caller.user_id, question)
        if earlier is not None:
            if earlier.role != Role.USER or earlier.text != text:
                raise SameIdOtherText("this client_message_id was used for another message.")
            return _repeated(conversation, earlier, _first_answer(earlier))
        message = Message(
            conversation=conversation,
            parent_id=_parent_of(conversation, question),
            role=Role.USER,
            text=text,
            client_message_id=question.client_message_id,
        )
        INSERT_MESSAGE(message)
        if not conversation.title:
            conversation.title = _title(text)
        return _queue_answer(conversation, message, caller, known)


def store_regeneration(
    caller: Caller, client_message_id: UUID, message_id: UUID, known: Served = NOTHING_SERVED
) -> Stored:
    """Stores a new queued answer beside the old one that `message_id` is, or below the question that it is.

    Raises RequestError, and ReplyRefused by the caller's quotas; then nothing is stored.
    """
    with transaction.atomic():
        admission.one_at_a_time(caller.user_id)
        conversation, message = own_message(caller.user_id, message_id)
        question = message if message.role == Role.USER else message.parent
        if question is None:
            raise InvalidRequest("this message answers nothing.")
        earlier = _earlier(conversation, client_message_id)
        if earlier is not None:
            if earlier.role != Role.ASSISTANT or earlier.parent_id != question.pk:
                raise SameIdOtherText("this client_message_id was used for another message.")
            return _repeated(conversation, question, earlier)
        return _queue_answer(conversation, question, caller, known, client_message_id)


def store_continuation(
    caller: Caller, client_message_id: UUID, message_id: UUID, known: Served = NOTHING_SERVED
) -> Stored:
    """Stores a new queued answer beside the one that ended at its length, and which begins with that one's text.

    Raises RequestError, and ReplyRefused by the caller's quotas; then nothing is stored.
    """
    with transaction.atomic():
        admission.one_at_a_time(caller.user_id)
        conversation, begun = own_message(caller.user_id, message_id)
        earlier = _earlier(conversation, client_message_id)
        if earlier is not None:
            is_other = earlier in (begun, begun.parent) or earlier.parent_id != begun.parent_id
            if is_other or earlier.parent is None or not earlier.text.startswith(begun.text):
                raise SameIdOtherText("this client_message_id was used for another message.")
            return _repeated(conversation, earlier.parent, earlier)
        generation = Generation.objects.filter(message=begun, state=State.COMPLETE).first()
        is_cut = generation is not None and generation.finish_reason == FinishReason.LENGTH.value
        if not is_cut or not begun.text or begun.parent is None:
            raise NotContinuable("Only an answer that ended because it was long enough can go on.")
        return _queue_answer(conversation, begun.parent, caller, known, client_message_id, begun)


def store_messages(messages: Sequence[Message]) -> None:
    """Stores many new messages, in as many statements as each of them is done in its time."""
    batch: list[Message] = []
    num_chars = 0
    for message in messages:
        if len(batch) == BATCH or num_chars > BATCH_CHARS:
            Message.objects.bulk_create(batch)
            batch, num_chars = [], 0
        batch.append(message)
        num_chars += len(message.text)
    Message.objects.bulk_create(batch)


def own_message(user_id: int, message: UUID) -> tuple[Conversation, Message]:
    """The message with its parent, and its conversation, locked. Raises NotFound."""
    mine = Message.objects.filter(pk=message, conversation__owner=user_id)
    found = mine.values("conversation").first()
    if found is None:
        raise NotFound("there is no such message.")
    conversation = locked(user_id, found["conversation"])
    return conversation, conversation.messages.select_related("parent").get(pk=message)


def _place_of(user_id: int, question: Question) -> tuple[Conversation, Message | None]:
    """The conversation, to itself until the transaction ends, and an earlier copy of the message if there is one."""
    name = question.conversation
    if name is None:
        name = begun_by(user_id, question.client_message_id)
        new = Conversation(id=name, owner_id=user_id, is_temporary=question.is_temporary)
        if INSERT_CONVERSATION(new):
            return new, None
    conversation = locked(user_id, name)
    return conversation, _earlier(conversation, question.client_message_id)


def _earlier(conversation: Conversation, client_message_id: UUID) -> Message | None:
    found = statements.value(EARLIER, [conversation.pk, client_message_id])
    return None if found is None else conversation.messages.get(pk=found)


def begun_by(user_id: int, client_message_id: UUID) -> UUID:
    """The id of the conversation that this message of the user's begins."""
    return uuid5(_CONVERSATION_NAMES, f"{user_id}:{client_message_id}")


def locked(user_id: int, conversation: UUID) -> Conversation:
    """The user's conversation, to itself until the transaction ends. Raises NotFound."""
    # Its key stays: an answer that is ending has its message checked for it at last, and must not wait for us there.
    mine = Conversation.objects.select_for_update(no_key=True).filter(pk=conversation, owner=user_id)
    row = mine.first()
    if row is None:
        raise NotFound("there is no such conversation.")
    return row


def all_locked(user_id: int, conversations: Collection[UUID]) -> list[Conversation]:
    """The same with several, each named once. Raises NotFound when one of them is not the user's."""
    # In the order of their ids, so that two callers with the same ones can't wait for each other.
    rows = Conversation.objects.select_for_update(no_key=True).filter(pk__in=conversations, owner=user_id)
    found = list(rows.order_by("pk"))
    if len(found) < len(conversations):
        raise NotFound("there is no such conversation.")
    return found


def _parent_of(conversation: Conversation, question: Question) -> UUID | None:
    """Where the message hangs: an ordinary one at the active leaf, whatever the page still showed."""
    if question.parent is not None:
        role = statements.value(ROLE, [conversation.pk, question.parent])
        if role is None:
            raise NotFound("there is no such parent message.")
        if role != Role.ASSISTANT:
            raise InvalidRequest("a message follows an answer, not another message.")
    return question.parent if question.is_branch else conversation.active_leaf_id


def _queue_answer(
    conversation: Conversation,
    question: Message,
    caller: Caller,
    known: Served,
    client_message_id: UUID | None = None,
    begun: Message | None = None,
) -> Stored:
    answer = Message(
        conversation=conversation,
        parent=question,
        role=Role.ASSISTANT,
        state=State.QUEUED,
        client_message_id=client_message_id,
    )
    if begun is not None:
        answer.text, answer.token_ids, answer.tokenizer = begun.text, begun.token_ids, begun.tokenizer
    INSERT_MESSAGE(answer)
    generation = uuid4()
    generations.queue(
        Generation(id=generation, message=answer, user_id=caller.user_id, api_key_id=caller.api_key)
    )
    info = known.chosen(conversation.model)
    if info is not None and not conversation.model:
        conversation.model = info.model
    statements.changed(LEAD_TO, [answer.pk, conversation.title, conversation.model, conversation.pk])
    # Last, because until the end of the transaction others wait for the counters.
    admission.admit_answers(caller, [generation], lambda _: _most_tokens(conversation, info))
    return _stored(conversation, question, answer, generation)


def _most_tokens(conversation: Conversation, info: EngineInfo | None) -> int:
    max_tokens = conversation.parameters.get("max_tokens")
    return bounds.most_tokens(bounds.of_conversation(conversation), max_tokens, info)


def _first_answer(question: Message) -> Message:
    return question.children.filter(client_message_id=None).earliest("created_at")


def _repeated(conversation: Conversation, question: Message, answer: Message) -> Stored:
    generation = Generation.objects.values_list("pk", flat=True).get(message=answer)
    return replace(_stored(conversation, question, answer, generation), is_new=False, begun="")


def _stored(conversation: Conversation, question: Message, answer: Message, generation: UUID) -> Stored:
    return Stored(
        generation=generation,
        conversation=conversation.pk,
        user_message=question.pk,
        answer=answer.pk,
        parent=question.parent_id,
        title=conversation.title,
        is_new=True,
        begun=answer.text,
    )


def _title(text: str) -> str:
    """The beginning of the first message on one line."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"
