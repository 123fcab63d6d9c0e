"""Texts become vectors for somebody: counted against their quotas before, settled with what it took after.

No answer and no conversation: nothing of it is stored but counts. Knows no form in which vectors are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from django.db import transaction

from chatsite.accounts.ledger import booking
from chatsite.accounts.quotas import admission, settlement
from chatsite.accounts.quotas.standing import Standing
from chatsite.chat import bounds
from chatsite.chat.admission import counting_refusals
from chatsite.chat.ending import completed
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.engines import engines
from inference.client import EmbedResult
from inference.errors import EngineError


async def embed(caller: Caller, texts: Sequence[str]) -> tuple[EmbedResult, tuple[Standing, ...]]:
    """The vectors, and how the caller's quotas stand. Raises ReplyRefused, and the client's errors.

    Whoever goes away meanwhile pays what it took: the work is done by then.
    """
    request = uuid4()
    standings = await counting_refusals(run_in_db(_admit, caller, request, texts))
    return await completed(_embed(caller, request, texts)), standings


@transaction.atomic
def _admit(caller: Caller, request: UUID, texts: Sequence[str]) -> tuple[Standing, ...]:
    admission.one_at_a_time(caller.user_id)
    return admission.admit(caller, [request], lambda _: bounds.of_texts(texts))


async def _embed(caller: Caller, request: UUID, texts: Sequence[str]) -> EmbedResult:
    try:
        made = await engines().embed(list(texts))
    except EngineError as error:
        if error.retryable:  # there was no room for it
            await run_in_db(settlement.give_back, request)
        else:
            await run_in_db(settlement.settle, request, 0)
        raise
    await run_in_db(_book, caller, request, made)
    return made


@transaction.atomic
def _book(caller: Caller, request: UUID, made: EmbedResult) -> None:
    booking.book_embedding(caller, request, made.embedder, made.num_tokens)
    settlement.settle(request, made.num_tokens)
