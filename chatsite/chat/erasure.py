"""Erasing: conversations, or a person with everything of theirs, leave every store, and a receipt says so.

Rows and cached answers go in one transaction with the receipt's first lines; what other processes hold is told to them
by `receipts`. The usage ledger keeps its counts without a name. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import connection, transaction
from django.db.models import QuerySet

from chatsite.accounts import departure
from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.ledger import booking
from chatsite.accounts.models import UsageRecord, User
from chatsite.chat import receipts
from chatsite.chat.models import LIVE_STATES, Conversation, ErasureReceipt, Generation, Message
from chatsite.chat.receipts import Traces
from chatsite.chat.store import all_locked
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from inference.types import Owner
from semcache import service

logger = logging.getLogger(__name__)

# Whoever asked does not wait longer for other processes to be told; a worker goes on.
TOLD_WITHIN_S = 2.0

STATEMENT_WITHIN_MS = 45_000

# The stores of rows as receipts name them; a table that is not named here goes by its own name.
NAMES = {
    "chat.Conversation": "conversations",
    "chat.Message": "messages",
    "chat.Generation": "generations",
    "chat.Feedback": "feedback",
    "chat.AgainOrder": "again",
    "chat.ShareLink": "shares",
}
NAMES_OF_A_PERSON = NAMES | {
    "chat.PromptTemplate": "templates",
    "chat.ExportLink": "exports",
    "accounts.ApiKey": "keys",
    "accounts.Identity": "identities",
    "accounts.Quota": "quotas",
    "accounts.User": "account",
}


async def erase(caller: Caller, conversation: UUID) -> UUID:
    """Removes a conversation from every store; the receipt's id. Raises NotFound."""
    return await erase_many(caller, [conversation])


async def erase_many(caller: Caller, conversations: Collection[UUID]) -> UUID:
    """The same with several, or with none where one is not the caller's."""
    return await _told(await run_in_db(_erase_conversations, caller, set(conversations)))


async def erase_user(user: User) -> UUID:
    """Removes a person from every store; the receipt's id. Raises User.DoesNotExist."""
    return await _told(await run_in_db(erase_user_rows, user))


@transaction.atomic
def erase_user_rows(user: User) -> UUID:
    """Removes a person's rows and cached answers; the receipt, by which a worker tells all others within a minute."""
    _take_time()
    person = User.objects.select_for_update(no_key=True).get(pk=user.pk)  # nobody asks from now on
    owner, made = caller_of_user(person).owner, Generation.objects.filter(user=person)
    tenants = {str(person.tenant_id), *_tenants_of(UsageRecord.objects.filter(user=person))}
    tenants |= {str(tenant) for tenant in person.api_keys.values_list("tenant", flat=True)}
    conversations = [str(pk) for pk in Conversation.objects.filter(owner=person).values_list("pk", flat=True)]
    names = {"", *conversations, *made.values_list("kv_conversation", flat=True)}
    traces = _traces(made, _owners(tenants, owner, names), user=person.pk)
    User.objects.select_for_update().get(pk=user.pk)  # no new rows from now on
    cached = service.forget(
        traces.generations, _first_questions(Message.objects.filter(conversation__owner=person))
    )
    service.forget_person(owner, str(person.pk))
    booking.book_unfinished(made)
    beside = departure.forget_beside(person)
    kept = {"usage": UsageRecord.objects.filter(user=person).count()}
    erased = _named(person.delete()[1], NAMES_OF_A_PERSON)
    return receipts.issue(ErasureReceipt.What.PERSON, traces, erased | beside | {"cache": cached}, kept)


@transaction.atomic
def _erase_conversations(caller: Caller, wanted: set[UUID]) -> UUID:
    _take_time()
    found = [row.pk for row in all_locked(caller.user_id, wanted)]
    made = Generation.objects.filter(message__conversation__in=found)
    used = UsageRecord.objects.filter(generation__in=made.values("pk"))
    tenants = {caller.tenant, *_tenants_of(used)}
    traces = _traces(made, _owners(tenants, caller.owner, map(str, found)))
    cached = service.forget(
        traces.generations, _first_questions(Message.objects.filter(conversation__in=found))
    )
    booking.book_unfinished(made)
    kept = {"usage": used.count()}
    erased = _named(Conversation.objects.filter(pk__in=found).delete()[1], NAMES)
    return receipts.issue(ErasureReceipt.What.CONVERSATION, traces, erased | {"cache": cached}, kept)


def _take_time() -> None:
    """For this transaction: years of messages go in one statement, which may take longer than a page may wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(STATEMENT_WITHIN_MS)])


async def _told(receipt: UUID) -> UUID:
    try:
        async with asyncio.timeout(TOLD_WITHIN_S):
            await receipts.settle(receipt)
    except (TimeoutError, DatabaseError) as error:
        logger.warning("erasure %s is left to a worker: %r", receipt, error)
    return receipt


def _traces(made: QuerySet[Generation], owners: Iterable[Owner], user: int | None = None) -> Traces:
    """Locks the answers first: whoever ends one does so, too, and then needs rows of the ledger and of the person."""
    states = dict(made.select_for_update(of=("self",)).order_by("pk").values_list("pk", "state"))
    live = tuple(pk for pk, state in states.items() if state in LIVE_STATES)
    return Traces(tuple(states), live, tuple(owners), user)


def _owners(tenants: Iterable[str], owner: str, conversations: Iterable[str]) -> list[Owner]:
    names = sorted(conversations)
    return [Owner(tenant, owner, name) for tenant in sorted(tenants) for name in names]


def _tenants_of(used: QuerySet[UsageRecord]) -> set[str]:
    """The business lines under which KV was kept: a user or a key may have moved since."""
    return {str(tenant) for tenant in used.values_list("tenant", flat=True).distinct()}


def _first_questions(messages: QuerySet[Message]) -> list[str]:
    """Only these may stand in the cache's log of questions that are everybody's."""
    return list(messages.filter(parent=None, role="user").values_list("text", flat=True))


def _named(deleted: dict[str, int], names: dict[str, str]) -> dict[str, int]:
    """How many rows went, by store."""
    own = {names.get(label, label.rpartition(".")[2].lower()): number for label, number in deleted.items()}
    return dict.fromkeys(names.values(), 0) | own
