"""Erasing: a conversation, or a person with everything of theirs, leaves every store.

Rows and cached answers go in one transaction. The engine is told when it stands: it ends what it is making and drops
the KV that it keeps in memory and on disk. The usage ledger keeps its counts without a name. Knows no HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.models import User
from chatsite.chat.ending import cancel_in_engine
from chatsite.chat.models import LIVE_STATES, Conversation, Generation
from chatsite.chat.store import locked
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.engine import engine
from inference.errors import EngineError
from inference.types import Owner
from semcache import service

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Traces:
    """What the engine has of erased rows: answers in the making, and conversations whose KV it may keep."""

    live: tuple[UUID, ...]
    owners: tuple[Owner, ...]


async def erase(caller: Caller, conversation: UUID) -> None:
    """Removes a conversation from every store. Raises NotFound."""
    await forget(await run_in_db(_erase_conversation, caller, conversation))


async def erase_many(caller: Caller, conversations: Sequence[UUID]) -> None:
    """Removes all of these from every store, or none. Raises NotFound."""
    await forget(await run_in_db(_erase_conversations, caller, conversations))


async def erase_user(user: User) -> None:
    """Removes a person from every store."""
    await forget(await run_in_db(erase_user_rows, user))


@transaction.atomic
def erase_user_rows(user: User) -> Traces:
    """Removes a person's rows and cached answers. The caller owes `forget` what it gives, once that is committed."""
    caller = caller_of_user(User.objects.select_for_update().get(pk=user.pk))  # no new rows from now on
    states = dict(Generation.objects.filter(user=user).values_list("pk", "state"))
    conversations = Conversation.objects.filter(owner=user).values_list("pk", flat=True)
    owners = [Owner(caller.tenant, caller.owner, str(pk)) for pk in conversations]
    # A key's business line counts, which need not be its user's.
    keyed = Generation.objects.filter(user=user).exclude(kv_conversation="")
    for tenant, conversation in keyed.values_list("api_key__tenant", "kv_conversation").distinct():
        owners.append(Owner(str(tenant or user.tenant_id), caller.owner, conversation))
    user.delete()
    return _without_answers(states, owners)


async def forget(traces: Traces) -> None:
    """Tells the engine. One that can't be reached loses what it keeps by its own limits."""
    for generation in traces.live:
        await cancel_in_engine(generation)
    for owner in traces.owners:
        try:
            await engine().forget(owner)
        except EngineError as error:
            logger.warning("the engine was not told to forget %s: %s", owner.conversation, error.message)


@transaction.atomic
def _erase_conversation(caller: Caller, conversation: UUID) -> Traces:
    row = locked(caller.user_id, conversation)
    states = dict(Generation.objects.filter(message__conversation=row).values_list("pk", "state"))
    row.delete()
    return _without_answers(states, [Owner(caller.tenant, caller.owner, str(conversation))])


@transaction.atomic
def _erase_conversations(caller: Caller, conversations: Sequence[UUID]) -> Traces:
    all_traces = [_erase_conversation(caller, pk) for pk in sorted(conversations)]
    return Traces(
        tuple(pk for traces in all_traces for pk in traces.live),
        tuple(owner for traces in all_traces for owner in traces.owners),
    )


def _without_answers(states: dict[UUID, str], owners: Iterable[Owner]) -> Traces:
    service.forget(list(states))
    return Traces(tuple(pk for pk, state in states.items() if state in LIVE_STATES), tuple(owners))
