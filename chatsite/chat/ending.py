"""How the making of an answer is kept, interrupted, stopped and ended: the same for new and adopted answers.

Knows the record, the engine's cancel and the last event; does not know how the text is made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError

from chatsite.chat import flight, generations, outcome
from chatsite.chat.events import Durations, Ended
from chatsite.chat.keeping import LeaseLost
from chatsite.chat.live import HandedOver, LiveAnswer
from chatsite.chat.models import FINAL_STATES, State
from chatsite.chat.notices import Kind, board
from chatsite.chat.outcome import Outcome
from chatsite.chat.record import Record, end
from chatsite.db import run_in_db
from chatsite.engines import engines
from inference.errors import EngineError

logger = logging.getLogger(__name__)

# An answer that others follow is asked about again after so long.
ORPHAN_CHECK_S = 1.0

T = TypeVar("T")


async def kept(record: Record, making: Coroutine[Any, Any, T], interrupted: Callable[[Outcome], T]) -> T:
    """The result of `making` beside its checkpoints and within the deadline; `interrupted(outcome)` when it isn't."""
    try:
        async with asyncio.timeout(settings.CONFIG.deadline_s), asyncio.TaskGroup() as group:
            beside = [
                group.create_task(record.keep()),
                group.create_task(_end_when_orphaned(record.live)),
            ]
            made = await making
            for task in beside:
                task.cancel()
        return made
    except TimeoutError:
        return interrupted(outcome.TIMED_OUT)
    except ExceptionGroup as errors:
        if errors.subgroup(LeaseLost):
            return interrupted(outcome.STOPPED)
        logger.exception("answer %s broke", record.live.generation)
        return interrupted(outcome.BROKEN)


async def settled(record: Record, ended_as: Outcome) -> tuple[State, Durations] | None:
    """Stores the end; the state that stands, which another hand may have set before.

    None, with followers told, when this process can't end it: another one adopted it, or will when the lease expires.
    """
    try:
        standing, durations = await record.finish(ended_as)
    except DatabaseError:
        logger.exception("the end of %s could not be stored", record.live.generation)
        standing, durations = State.RUNNING, Durations()
    if standing not in FINAL_STATES:
        record.live.fail(HandedOver())
        return None
    if ended_as.is_engine_busy:
        await cancel_in_engine(record.live.generation)
    return standing, durations


async def said(record: Record, ended_as: Outcome, standing: State, durations: Durations) -> Ended:
    """Says the end to all followers."""
    ended = Ended(
        record.live.generation,
        state=standing,
        finish_reason=ended_as.finish_reason,
        origin=ended_as.origin,
        counts=ended_as.counts,
        durations=durations,
        model=ended_as.model or record.model,
        cache_age_s=ended_as.cache_age_s,
        cache_is_stale=ended_as.cache_is_stale,
        error_code=ended_as.error_code,
        error_message=ended_as.error_message,
        is_retryable=ended_as.is_retryable,
    )
    record.live.say(ended)
    return ended


async def stop(generation: UUID) -> None:
    """Ends an answer at once, wherever it is made and whatever it waits for; harmless after its end."""
    if await cancel_in_engine(generation):
        return
    if await ended(generation, outcome.CANCELLED):
        await cancel_in_engine(generation)  # it may have got there in between


async def ended(generation: UUID, ended_as: Outcome) -> bool:
    """Ends an answer whose owner may be gone, and tells its person's tabs. False when it has ended already."""
    if not await run_in_db(end, generation, ended_as):
        return False
    if place := await run_in_db(generations.place_of, generation):
        user, conversation = place
        await board.changed(user, Kind.ANSWERED, [conversation])
    return True


async def _end_when_orphaned(live: LiveAnswer) -> None:
    """Asks the engine to end what nobody has followed for long; it knows whether other processes follow it.

    The engine's stream then says the end, so what was written is kept as that of an interrupted answer.
    """
    ttl_s = settings.CONFIG.orphan_ttl_s
    while True:
        await asyncio.sleep(max(ttl_s - live.unfollowed_s, ORPHAN_CHECK_S))
        if live.unfollowed_s >= ttl_s:
            await cancel_in_engine(live.generation, only_if_orphaned=True)


async def cancel_in_engine(generation: UUID, *, only_if_orphaned: bool = False) -> bool:
    """True when the engine was at it and ends it; an answer that others wait for goes on for them."""
    target = await flight.to_cancel(generation, only_if_orphaned=only_if_orphaned)
    if target is None:
        return False
    try:
        return await engines().cancel(str(target), only_if_orphaned=only_if_orphaned)
    except EngineError as error:
        logger.warning("the engine could not be told to cancel %s: %s", target, error.message)
        return False


async def completed(work: Awaitable[T]) -> T:
    """The result of `work`, which runs to its end even when the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
