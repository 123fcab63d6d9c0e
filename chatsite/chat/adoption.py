"""Answers whose process died are taken over and finished; nothing stays unfinished past its deadline.

Run by every web process and by a periodic task, each as often as it likes: a conditional update decides who takes what.
Knows leases and the engine's log; knows no door.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from uuid import UUID

from django.db import Error as DatabaseError

from chatsite.chat import flight, generations, outcome
from chatsite.chat.ending import cancel_in_engine, completed, ended, kept, said, settled
from chatsite.chat.live import LiveAnswer
from chatsite.chat.models import Generation, State
from chatsite.chat.notices import Kind, board
from chatsite.chat.outcome import Outcome
from chatsite.chat.owed import settle_owed
from chatsite.chat.record import Record
from chatsite.chat.running import Running
from chatsite.db import run_in_db
from chatsite.metrics import observe_reply
from inference.errors import EngineError

logger = logging.getLogger(__name__)

BATCH = 100
REAP_GRACE_S = 10.0  # the promise is 15 s; a sweep may come some seconds late


async def adopt_orphans(into: Running) -> int:
    """Takes over what has an expired lease, as tasks of `into`; the number of adopted generations."""
    adopted = 0
    for generation in await run_in_db(generations.expired_leases, BATCH):
        row = await run_in_db(_take, generation)
        if row is None:
            continue
        adopted += 1
        text = row.message.text if row.message is not None else ""
        live = LiveAnswer(generation, text, row.stored_seq)
        into.begin(live, partial(_finish_adopted, row))
    return adopted


async def reap() -> int:
    """Ends what is past its deadline; the number of generations that were."""
    reaped = 0
    for generation in await run_in_db(generations.overdue, REAP_GRACE_S, BATCH):
        if await ended(generation, outcome.TIMED_OUT):
            reaped += 1
            await cancel_in_engine(generation)
    return reaped


async def sweep_forever(into: Running, every_s: float) -> None:
    """Adopts and reaps now and then every `every_s` seconds."""
    while True:
        try:
            if adopted := await adopt_orphans(into):
                logger.info("adopted %d answers", adopted)
            if reaped := await reap():
                logger.warning("ended %d answers past their deadline", reaped)
            await settle_owed()
        except DatabaseError as error:
            logger.warning("sweep put off, the database is away: %s", error)
        except Exception:  # a mistake of ours in one sweep must not end the sweeping
            logger.exception("sweep broken off")
        await asyncio.sleep(every_s)


def _take(generation: UUID) -> Generation | None:
    if not generations.adopt(generation):
        return None
    return Generation.objects.select_related("message").filter(pk=generation).first()  # or erased meanwhile


async def _finish_adopted(row: Generation, live: LiveAnswer) -> None:
    record = Record(live, adopted=row.message, model=row.model)
    try:
        ended_as = await kept(record, _go_on(row, record), lambda interrupted: interrupted)
    except asyncio.CancelledError:
        await completed(record.hand_over())
        raise
    await completed(_conclude(row, record, ended_as))


async def _go_on(row: Generation, record: Record) -> Outcome:
    """Goes on where the last checkpoint was. A `/v1` answer has lost its reader: it is ended."""
    if row.message is None:
        await cancel_in_engine(row.pk)
        return Outcome(
            State.INTERRUPTED,
            "interrupted",
            "abandoned",
            "The connection to the reader was lost.",
            has_usage=False,
        )
    try:
        return await flight.resumed(row.pk, record)
    except EngineError as error:
        return outcome.of_loss(error)


async def _conclude(row: Generation, record: Record, ended_as: Outcome) -> None:
    settlement = await settled(record, ended_as)
    if settlement is None:
        return
    observe_reply(await said(record, ended_as, *settlement), door="worker")
    if row.message is not None:
        await board.changed(row.user_id, Kind.ANSWERED, [row.message.conversation_id])
