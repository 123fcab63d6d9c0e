"""What a tab is told of a change: frames with what the list shows from now on, read as its owner may read it."""

from __future__ import annotations

import asyncio
import logging

from django.db import Error as DatabaseError

from chatsite.chat.frames import ChangedFrame
from chatsite.chat.listing import listed
from chatsite.chat.notices import Changed, Kind
from chatsite.db import run_in_db

logger = logging.getLogger(__name__)


# Of a notice that is being read; by its identity, because an equal one may be of a later change.
_readings: dict[int, asyncio.Future[list[ChangedFrame]]] = {}


async def frames_of(changed: Changed) -> list[ChangedFrame]:
    """One for each conversation; none for those that no list shows. A database that is away costs only these.

    All tabs of this process that are told of the same notice at once share one look into the rows.
    """
    reading = _readings.get(id(changed))
    if reading is None:
        reading = _readings[id(changed)] = asyncio.ensure_future(_read(changed))
        reading.add_done_callback(lambda _: _readings.pop(id(changed)))
    return await asyncio.shield(reading)


async def _read(changed: Changed) -> list[ChangedFrame]:
    kind = changed.kind.value
    if changed.kind is Kind.MANY:
        return [ChangedFrame(kind)]
    try:
        rows = await run_in_db(listed, changed.user, changed.conversations)
    except DatabaseError as error:
        logger.warning("a person's tabs hear nothing of a change, the database is away: %s", error)
        return []
    told = [ChangedFrame(kind, row.id, row) for row in rows]
    if changed.kind is Kind.ERASED:
        told += [ChangedFrame(kind, gone) for gone in set(changed.conversations) - {row.id for row in rows}]
    return told
