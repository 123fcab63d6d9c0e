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
from chatsite.chat.outcome import Outcome
from chatsite.chat.record import Record
from chatsite.chat.relay import relay
from chatsite.chat.semantic import forget_erased, verify
from chatsite.db import run_in_db
from chatsite.engines import engines
from inference.errors import EngineError, ModelLoading, QueueFull, RequestRefused
from inference.types import EngineInfo, GenerateRequest, Owner, Sampling, Segment
from semcache import again, service
from semcache.lending import NotMade, WhyNot
from semcache.quality import budget, sameness
from semcache.service import Answer

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


class Making(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that the model is to make. `run` names it; `model` is the one that is meant, in this `revision`."""

    run: UUID
    tenant: str
    owner: str
    segments: tuple[Segment, ...]
    sampling: Sampling
    revision: str
    model: str = ""


class Order(Making, frozen=True, kw_only=True):
    """One that is made again, as it lies for the worker, and what for."""

    purpose: Refresh | Check


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
        return await _used(order, await made(order))
    except NotMade as error:
        logger.info("the answer %s was not made again: %s", order.run, error.why)
        return False
    finally:
        await run_in_db(again.release, order.run)


async def made(making: Making) -> Answer:
    """What the very model that is meant says, booked on nobody's name. Raises NotMade."""
    request = request_of(making)
    info = _meant(await engines().foremost(making.model, request.owner, request.segments), making)
    record = Record(LiveAnswer(making.run))
    await run_in_db(booking.open_again, making.run, making.tenant, info.model)
    try:
        async with asyncio.timeout(_limit_s() + GRACE_S):
            ended_as = await _relayed(request, making, record)
    except TimeoutError:
        raise NotMade(WhyNot.TOO_LATE) from None
    except EngineError as error:
        raise NotMade(_why_not(error)) from error
    timings = ended_as.timings
    await run_in_db(booking.settle, making.run, ended_as.usage, timings, ended_as.state)
    return Answer(
        text=record.live.text,
        is_complete=ended_as.state is State.COMPLETE and ended_as.is_whole,
        token_ids=tuple(record.token_ids),
        tokenizer=info.tokenizer,
        num_tokens=len(record.token_ids),
        took_ms=(timings.prefill_s + timings.decode_s) * 1000,
    )


async def _relayed(request: GenerateRequest, making: Making, record: Record) -> Outcome:
    """Into the record. Raises the client's errors, and NotMade where another model took it meanwhile."""
    engine, _ = await engines().submit(request, making.model)
    try:
        _meant(engine.info, making)
    except NotMade:
        await engine.client.cancel(request.generation_id)
        raise
    async with aclosing(engine.client.attach(str(making.run))) as events:
        return await relay(events, record)


def _meant(info: EngineInfo | None, making: Making) -> EngineInfo:
    """Raises NotMade where another model would answer."""
    if info is None:
        raise NotMade(WhyNot.AWAY)
    if info.revision != making.revision:
        raise NotMade(WhyNot.OTHER_MODEL)
    return info


def _why_not(error: EngineError) -> WhyNot:
    if isinstance(error, QueueFull):
        return WhyNot.BUSY
    is_refusal = isinstance(error, RequestRefused) and not isinstance(error, ModelLoading)
    return WhyNot.REFUSED if is_refusal else WhyNot.AWAY


async def _used(order: Order, answer: Answer) -> bool:
    match order.purpose:
        case Refresh(entry, created_at):
            return await run_in_db(service.refresh, entry, created_at, order.revision, answer)
        case Check() as check:
            return answer.is_complete and await _compared(check, answer.text)


async def _compared(check: Check, made: str) -> bool:
    """Takes what the model says now as the measure for the rule that served: a proxy (`semcache.text.comparison`)."""
    found = await sameness.compared(check.served, made, verify)
    await run_in_db(
        budget.record,
        check.rule,
        "sampled",
        not found.is_same,
        generation=check.generation,
        entry=check.entry,
        similarity=check.similarity,
        score=check.score,
        served_at=check.served_at,
    )
    await run_in_db(forget_erased, check.generation)
    return True


def request_of(order: Making) -> GenerateRequest:
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
