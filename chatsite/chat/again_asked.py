"""What is made again after a hit: an answer past its time, for the next one who asks, and a sample of those that were
served by their meaning, to learn how often that is wrong.

Never at the cost of anybody who asks: it is decided when the hit was served, sent while the engine has nobody waiting,
at most a few are under way in all, and one that is not picked up soon is dropped. Knows the way to the worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import msgspec
from celery import current_app
from django.conf import settings
from django.db import Error as DatabaseError
from django.utils import timezone
from kombu.exceptions import OperationalError

from chatsite.chat.again import Check, Order, Refresh, lay_down, request_of
from chatsite.chat.semantic import Looked, leading_of
from chatsite.chat.turn import Turn
from chatsite.db import run_in_db
from chatsite.engines import engines
from inference.errors import EngineError
from inference.types import Segment
from semcache import again
from semcache.quality import budget
from semcache.rules.policy import Rule
from semcache.service import Hit, Outcome
from semcache.text.normalize import sha256_of

logger = logging.getLogger(__name__)

TASK = "chat.make_again"
# The broker drops what no worker took by then, and the place is free again.
TAKEN_WITHIN_S = 30.0
SENT_WITHIN_S = 5.0
# A table for minutes is no place for whole books.
MAX_CHARS = 100_000

_sending: set[asyncio.Task[None]] = set()


def after_hit(turn: Turn, looked: Looked) -> None:
    """Returns at once; what is to be made again is on its way soon, or not at all."""
    order = _order(turn, looked)
    if order is not None:
        task = asyncio.create_task(_sent(order, turn.generation), name=f"again {order.run}")
        _sending.add(task)
        task.add_done_callback(_sending.discard)


async def all_sent() -> None:
    """For tests and an orderly end: nothing is on its way any more."""
    while _sending:
        await asyncio.wait(set(_sending))


def _order(turn: Turn, looked: Looked) -> Order | None:
    """None when there is nothing to make again, or the asker wants nothing of this stored."""
    hit, decision = looked.hit, looked.decision
    if hit is None or decision.rule is None or not turn.cache.may_store:
        return None
    if hit.is_stale:
        order = _refresh(turn, looked, hit)
    elif decision.outcome is Outcome.HIT_SEMANTIC and budget.wants_check(decision.rule):
        order = _check(turn, looked, hit, decision.rule)
    else:
        return None
    return order if sum(len(segment.text) for segment in order.segments) <= MAX_CHARS else None


def _refresh(turn: Turn, looked: Looked, hit: Hit) -> Order:
    """By what the stored answer answers: this very question with its history, or the first turn that was found."""
    is_same_question = hit.prompt_sha256 == looked.decision.prompt_sha256
    found = (*leading_of(turn.segments), Segment("user", hit.question))
    purpose = Refresh(hit.entry_id, hit.created_at)
    return _ordered(turn, looked, purpose, turn.segments if is_same_question else found)


def _check(turn: Turn, looked: Looked, hit: Hit, rule: Rule) -> Order:
    """By what was asked, with the words that the model finds likeliest."""
    purpose = Check(
        generation=turn.generation,
        rule=rule.id,
        entry=hit.entry_id,
        served=hit.answer[:MAX_CHARS],
        served_at=timezone.now(),
        similarity=hit.similarity,
        score=next((one.score for one in looked.decision.candidates if one.is_served), None),
    )
    order = _ordered(turn, looked, purpose, turn.segments)
    return msgspec.structs.replace(order, sampling=replace(turn.sampling, temperature=0.0))


def _ordered(turn: Turn, looked: Looked, purpose: Refresh | Check, segments: Sequence[Segment]) -> Order:
    return Order(
        run=uuid4(),
        purpose=purpose,
        tenant=turn.caller.tenant,
        owner=turn.caller.owner,
        # Without their ids, which only spare the engine some work.
        segments=tuple(Segment(segment.role, segment.text) for segment in segments),
        sampling=turn.sampling,
        revision=looked.question.model_revision,
        model=looked.question.model,
    )


async def _sent(order: Order, generation: UUID) -> None:
    try:
        async with asyncio.timeout(SENT_WITHIN_S):
            if not await _is_engine_idle(order) or not await run_in_db(_reserved, order, generation):
                return
            await asyncio.to_thread(_send, order)
    except (EngineError, DatabaseError, OperationalError, TimeoutError) as error:
        logger.info("an answer is not made again: %s", error)


async def _is_engine_idle(order: Order) -> bool:
    """Whether nobody waits for the engine that would make it."""
    request = request_of(order)
    best, *_ = await engines().ranked(order.model, request.owner, request.segments)
    stats = await best.client.stats()
    return stats.is_ready and not stats.waiting and not stats.waiting_offline


def _reserved(order: Order, generation: UUID) -> bool:
    at_most = settings.CONFIG.cache_again_at_once
    if not again.reserve(_what(order), order.run, TAKEN_WITHIN_S, at_most):
        return False
    lay_down(order, generation, timedelta(seconds=TAKEN_WITHIN_S))
    return True


def _what(order: Order) -> str:
    """The same for everybody who wants the same made again."""
    match order.purpose:
        case Refresh(entry):
            return sha256_of("refresh", str(entry))
        case Check(generation):
            return sha256_of("check", str(generation))


def _send(order: Order) -> None:
    current_app.send_task(TASK, args=[str(order.run)], expires=TAKEN_WITHIN_S, retry=False)
