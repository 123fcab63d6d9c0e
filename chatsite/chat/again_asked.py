"""What is made again after a hit: an answer past its time, so that the next one gets a fresh one.

Never at the cost of anybody who asks: it is decided when the hit was served, sent while the engine has nobody waiting,
at most a few are under way in all, and one that is not picked up soon is dropped. Knows the way to the worker.
"""

from __future__ import annotations

import asyncio
import logging
from uuid import uuid4

import msgspec
from celery import current_app
from django.conf import settings
from django.db import Error as DatabaseError
from kombu.exceptions import OperationalError

from chatsite.chat.again import Order, Refresh
from chatsite.chat.semantic import Looked, leading_of
from chatsite.chat.turn import Turn
from chatsite.db import run_in_db
from chatsite.engine import engine
from inference.errors import EngineError
from inference.types import Segment
from semcache import again
from semcache.normalize import sha256_of
from semcache.service import Hit

logger = logging.getLogger(__name__)

TASK = "chat.make_again"
# The broker drops what no worker took by then, and the place is free again.
TAKEN_WITHIN_S = 30.0
SENT_WITHIN_S = 5.0
# The broker is no place for whole books.
MAX_CHARS = 100_000

_sending: set[asyncio.Task[None]] = set()


def after_hit(turn: Turn, looked: Looked) -> None:
    """Returns at once; what is to be made again is on its way soon, or not at all."""
    order = _order(turn, looked)
    if order is not None:
        task = asyncio.create_task(_sent(order), name=f"again {order.run}")
        _sending.add(task)
        task.add_done_callback(_sending.discard)


async def all_sent() -> None:
    """For tests and an orderly end: nothing is on its way any more."""
    while _sending:
        await asyncio.wait(set(_sending))


def _order(turn: Turn, looked: Looked) -> Order | None:
    """None when there is nothing to make again, or the asker wants nothing of this stored."""
    hit = looked.hit
    if hit is None or not turn.cache.may_store or not hit.is_stale:
        return None
    segments = _question_of(hit, turn, looked)
    if sum(len(segment.text) for segment in segments) > MAX_CHARS:
        return None
    return Order(
        run=uuid4(),
        purpose=Refresh(hit.entry_id, hit.created_at),
        tenant=turn.caller.tenant,
        owner=turn.caller.owner,
        segments=segments,
        sampling=turn.sampling,
        revision=looked.question.model_revision,
    )


def _question_of(hit: Hit, turn: Turn, looked: Looked) -> tuple[Segment, ...]:
    """What the stored answer answers: this very question with its history, or the first turn that was found instead."""
    if hit.prompt_sha256 == looked.decision.prompt_sha256:
        return tuple(Segment(segment.role, segment.text) for segment in turn.segments)
    return (*leading_of(turn.segments), Segment("user", hit.question))


async def _sent(order: Order) -> None:
    try:
        async with asyncio.timeout(SENT_WITHIN_S):
            if not await _is_engine_idle() or not await run_in_db(_reserved, order):
                return
            await asyncio.to_thread(_send, order)
    except (EngineError, DatabaseError, OperationalError, TimeoutError) as error:
        logger.info("an answer is not made again: %s", error)


async def _is_engine_idle() -> bool:
    """Whether nobody waits for the engine."""
    stats = await engine().stats()
    return stats.is_ready and not stats.waiting and not stats.waiting_offline


def _reserved(order: Order) -> bool:
    at_most = settings.CONFIG.cache_again_at_once
    return again.reserve(_what(order), order.run, TAKEN_WITHIN_S, at_most)


def _what(order: Order) -> str:
    """The same for everybody who wants the same made again."""
    return sha256_of("refresh", str(order.purpose.entry))


def _send(order: Order) -> None:
    payload = msgspec.to_builtins(order)
    current_app.send_task(TASK, args=[payload], expires=TAKEN_WITHIN_S, retry=False)
