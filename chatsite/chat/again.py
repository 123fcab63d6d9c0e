"""One answer made once more behind the scenes, in a worker: nobody waits for it, and nobody is charged.

It is bulk work without a conversation or a generation row; the ledger books it on nobody's name. One worker makes it,
once: whatever goes wrong, it is dropped, and a later hit asks again. What is made again, and when, `again_asked` knows.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from chatsite.accounts.ledger import booking
from chatsite.chat.live import LiveAnswer
from chatsite.chat.models import AgainOrder, State
from chatsite.chat.record import Record
from chatsite.chat.relay import relay
from chatsite.chat.semantic import forget_erased
from chatsite.db import run_in_db
from chatsite.engine import engine, engine_info
from inference.errors import EngineError
from inference.types import GenerateRequest, Owner, Sampling, Segment
from semcache import again, service
from semcache.quality import budget
from semcache.service import Answer
from semcache.text.comparison import first_sentence, says_otherwise

logger = logging.getLogger(__name__)

# A worker's thread is lent for so long at most, however long a person's answer may take.
MADE_WITHIN_S = 200.0
# The engine ends it at its deadline; so much later it is given up anyway, and the place is free.
GRACE_S = 10.0


class Refresh(msgspec.Struct, frozen=True, tag="refresh"):
    """To take the place of the stored answer, if it is still the one of that moment."""

    entry: int
    created_at: datetime


class Check(msgspec.Struct, frozen=True, tag="check"):
    """To be compared with the stored answer that `generation` repeated; it was served by its meaning."""

    generation: UUID
    rule: int
    entry: int
    served: str
    served_at: datetime
    similarity: float
    score: float | None


class Order(msgspec.Struct, frozen=True):
    """What is made again, as it lies for the worker. `run` names this one making; `revision` is the model's."""

    run: UUID
    purpose: Refresh | Check
    tenant: str
    owner: str
    segments: tuple[Segment, ...]
    sampling: Sampling
    revision: str


def lay_down(order: Order, generation: UUID, kept: timedelta) -> None:
    """Keeps the order for the worker that takes it; those that nobody took within `kept` go."""
    AgainOrder.objects.filter(created_at__lt=timezone.now() - kept).delete()
    AgainOrder.objects.create(run=order.run, generation_id=generation, order=msgspec.to_builtins(order))


def taken(run: UUID) -> Order | None:
    """The order, which is nobody else's from now on; None when it was taken, or erased with its answer."""
    with transaction.atomic():
        row = AgainOrder.objects.select_for_update().filter(pk=run).first()
        if row is None:
            return None
        row.delete()
    return msgspec.convert(row.order, Order)


async def make_ordered(run: UUID) -> bool:
    """Takes the order of that making and makes it."""
    order = await run_in_db(taken, run)
    return order is not None and await make(order)


async def make(order: Order) -> bool:
    """True when an answer was made and used; False when another worker makes it, or nothing came of it."""
    if not await run_in_db(again.claim, order.run, _limit_s() + 2 * GRACE_S):
        return False
    try:
        answer = await _made(order)
        return answer is not None and await _used(order, answer)
    finally:
        await run_in_db(again.release, order.run)


async def _made(order: Order) -> Answer | None:
    """A whole answer, by the very model that the order means."""
    info = await engine_info()
    if info is None or info.revision != order.revision:
        return None
    record = Record(LiveAnswer(order.run))
    await run_in_db(booking.open_again, order.run, order.tenant, info.model)
    try:
        async with (
            asyncio.timeout(_limit_s() + GRACE_S),
            aclosing(engine().generate(_request(order))) as events,
        ):
            ended_as = await relay(events, record)
    except (EngineError, TimeoutError) as error:
        logger.info("the answer %s was not made again: %s", order.run, error)
        return None
    timings = ended_as.timings
    await run_in_db(booking.settle, order.run, ended_as.usage, timings, ended_as.state)
    return Answer(
        text=record.live.text,
        is_complete=ended_as.state is State.COMPLETE and ended_as.is_whole,
        token_ids=tuple(record.token_ids),
        tokenizer=info.tokenizer,
        num_tokens=len(record.token_ids),
        took_ms=(timings.prefill_s + timings.decode_s) * 1000,
    )


async def _used(order: Order, answer: Answer) -> bool:
    match order.purpose:
        case Refresh(entry, created_at):
            return await run_in_db(service.refresh, entry, created_at, order.revision, answer)
        case Check() as check:
            return answer.is_complete and await _compared(check, answer.text)


async def _compared(check: Check, made: str) -> bool:
    """Takes what the model says now as the measure for the rule that served: a proxy (`semcache.text.comparison`)."""
    score = await _score(first_sentence(check.served), first_sentence(made))
    await run_in_db(
        budget.record,
        check.rule,
        "sampled",
        says_otherwise(check.served, made, score),
        generation=check.generation,
        entry=check.entry,
        similarity=check.similarity,
        score=check.score,
        served_at=check.served_at,
    )
    await run_in_db(forget_erased, check.generation)
    return True


async def _score(one: str, other: str) -> float | None:
    """The verifier's, where there is one: without its word the words decide."""
    try:
        (score,) = await engine().verify([(one, other)])
    except EngineError as error:
        logger.debug("two answers were compared by their words: %s", error)
        return None
    return score


def _request(order: Order) -> GenerateRequest:
    """Under the asker's own name, because their words must reach nobody else's KV; under no conversation's."""
    return GenerateRequest(
        generation_id=str(order.run),
        segments=order.segments,
        owner=Owner(order.tenant, order.owner),
        sampling=order.sampling,
        is_offline=True,
        deadline_s=_limit_s(),
    )


def _limit_s() -> float:
    return min(settings.CONFIG.deadline_s, MADE_WITHIN_S)
