"""The door for a question that others ask at the same moment: one of them makes the answer, the others follow it.

Knows when answers may be shared at all, and that a broken store never costs an answer: then everybody makes an own
one. Who shares with whom is decided by the look-up's scope, so a private question is shared with its owner only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar
from uuid import UUID

from django.db import Error

from semcache.decision import Decision, Hit, Outcome, Question, Reason
from semcache.rules.policy import Mode
from semcache.storage import flight_rows, store
from semcache.storage.flight_rows import Flight
from semcache.storage.threads import in_database

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

STEP_WITHIN_S = 1.0
# A leader that has not handed its question to the engine after so long is taken for dead.
BOARDING_S = 15.0
FIRST_LOOK_S = 0.02
MAX_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Boarding:
    """Who makes the answer. `hit` is what was stored since the look-up: then nobody has to."""

    leader: UUID
    is_leader: bool
    hit: Hit | None = None


async def board(decision: Decision, question: Question, me: UUID) -> Boarding | None:
    """Joins those who wait for the same answer; None when this one is nobody else's business."""
    if not is_shareable(decision, question):
        return None
    place = decision.scope, decision.prompt_sha256
    leader = await _tried(flight_rows.board, *place, me, BOARDING_S)
    if leader != me:
        return None if leader is None else Boarding(leader, is_leader=False)
    assert decision.rule is not None
    hit = await _tried(store.find_exact, [place], decision.rule.ttl_s)
    if hit is not None:
        await disband(me)
    return Boarding(me, is_leader=True, hit=hit)


def is_shareable(decision: Decision, question: Question) -> bool:
    """Whether an answer to this question could have been served from the store, had it been there a moment ago."""
    is_ruled = decision.rule is not None and decision.rule.mode in (Mode.EXACT, Mode.SEMANTIC)
    is_sound = decision.outcome is Outcome.MISS and decision.reason not in (
        Reason.TIMEOUT,
        Reason.STORE_FAILED,
    )
    return is_ruled and is_sound and decision.is_storable and question.may_read and question.may_store


async def depart(me: UUID, lease_s: float) -> None:
    """The leader's answer can be followed from now on, for at most `lease_s`."""
    await _tried(flight_rows.depart, me, lease_s)


async def wait_up(leader: UUID) -> bool:
    """True once the leader's answer can be followed; False when it will not be: ask again who leads."""
    pause_s = FIRST_LOOK_S
    while (is_up := await _tried(flight_rows.is_up, leader)) is False:
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, MAX_LOOK_S)
    return bool(is_up)


async def find(me: UUID) -> Flight | None:
    """The flight that this generation leads or waits for."""
    return await _tried(flight_rows.find, me)


async def leave(me: UUID) -> Flight | None:
    """Gets off; the flight as it is after that. Whoever was the last may end the leader's generation."""
    return await _tried(flight_rows.leave, me)


async def land(leader: UUID) -> bool:
    """True for the first who says that the answer is whole: the one who stores it."""
    return bool(await _tried(flight_rows.land, leader))


async def disband(leader: UUID) -> None:
    """The answer is stored, or nobody makes it: the next one who asks begins anew."""
    await _tried(flight_rows.disband, leader)


def forget(generations: Sequence[UUID]) -> int:
    """Erased answers are aboard no flight, in the caller's transaction; how many flights went with them."""
    return flight_rows.forget(generations)


async def _tried(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """The result, or None when the store does not answer: what is asked of it here can be done without."""
    try:
        async with asyncio.timeout(STEP_WITHIN_S):
            return await in_database(work, *args, **kwargs)
    except (TimeoutError, Error) as error:
        logger.warning("a shared answer could not be looked after: %s", error)
        return None
