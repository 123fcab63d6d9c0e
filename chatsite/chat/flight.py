"""One generation for everybody who asks the same at once: who makes the answer, who follows it, who may end it.

The first one leads: its generation is the engine's. The others follow that generation's events, whichever process
they are in, and write them into rows of their own. The leader's stop takes only the leader off; whoever is the last
to go ends the engine's work. Knows `semcache.flights` as the door to what processes share.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from uuid import UUID

from django.conf import settings

from chatsite.chat import outcome
from chatsite.chat.models import Origin, State
from chatsite.chat.outcome import Outcome
from chatsite.chat.record import Record
from chatsite.chat.relay import relay
from chatsite.engines import engines
from inference.errors import EngineError
from inference.types import Timings, Usage
from semcache import flights

# Whoever followed an answer that failed before its first text takes part once more, and then takes what comes.
MAX_FAILED = 2


async def followed(leader: UUID, record: Record, on_up: Callable[[], None]) -> Outcome | None:
    """The answer of `leader` as this one's own; None when nobody makes it, or it failed before anything was seen.

    Once text was shown there is no way back: then a failure is everybody's.
    """
    if not await flights.wait_up(leader):
        return None
    on_up()
    try:
        async with aclosing(engines().attach(str(leader))) as events:
            return as_follower(await relay(events, record))
    except EngineError as error:
        return as_follower(outcome.of_loss(error))


def failed_unseen(ended_as: Outcome, record: Record) -> bool:
    """Whether another try can still give what nobody has seen a part of."""
    return ended_as.state is not State.COMPLETE and not record.live.text


def as_follower(ended_as: Outcome) -> Outcome:
    """An answer that another generation paid for, and for its failure: as good as an exact hit, and no time old."""
    free = replace(ended_as, usage=Usage(), timings=Timings(), has_usage=True)
    if ended_as.state is not State.COMPLETE:
        return free
    took_ms = (ended_as.timings.prefill_s + ended_as.timings.decode_s) * 1000
    return replace(free, origin=Origin.EXACT, cache_age_s=0, spared=ended_as.usage, spared_ms=took_ms)


async def leader_of(generation: UUID) -> UUID:
    """The generation under which the engine makes this answer."""
    flight = await flights.find(generation) if settings.CONFIG.cache_enabled else None
    return flight.leader if flight is not None else generation


async def resumed(generation: UUID, record: Record) -> Outcome:
    """An answer of another process, from the last checkpoint on. Raises the client's errors."""
    leader = await leader_of(generation)
    async with aclosing(engines().attach(str(leader), after=record.live.seq)) as events:
        ended_as = await relay(events, record)
    return ended_as if leader == generation else as_follower(ended_as)


async def to_cancel(generation: UUID, *, only_if_orphaned: bool) -> UUID | None:
    """What the engine may end when `generation` is given up; None while somebody else waits for it.

    An answer without readers stays aboard: they may come back, and who leaves has lost the right to end it.
    """
    if not settings.CONFIG.cache_enabled:
        return generation
    flight = await (flights.find if only_if_orphaned else flights.leave)(generation)
    if flight is None:
        return generation
    if flight.leader == generation and not flight.is_up:
        await flights.disband(generation)  # nobody follows it yet: another one leads
        return generation
    return None if any(other != generation for other in flight.aboard) else flight.leader
