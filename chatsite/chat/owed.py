"""What the engine took for answers that ended without its last word: stopped from elsewhere, late, erased, lost.

Their rows in the ledger are owed; the engine's event log still knows the figures. Whoever comes first settles a row.
Knows the engine's log and the ledger's door; knows no answer's text.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import aclosing
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from chatsite.accounts.ledger import booking
from chatsite.chat.outcome import STATES
from chatsite.db import run_in_db
from chatsite.engines import engines
from inference.errors import EngineError, GenerationUnknown
from inference.types import Done

logger = logging.getLogger(__name__)

BATCH = 100
# An answer that others still wait for goes on in the engine; the next sweep asks again.
SAID_WITHIN_S = 1.0
# So long a question may be on its way to an engine that does not know it yet.
ON_ITS_WAY = timedelta(seconds=10)
# An engine that was away for so long has forgotten; then the row keeps what was seen.
LAPSES_AFTER = timedelta(hours=1)


async def settle_owed() -> int:
    """Settles what can be settled now; how many rows."""
    rows = await run_in_db(booking.owed, BATCH)
    return sum(await asyncio.gather(*(_settle(row.generation, row.created_at) for row in rows)))


async def settle_these(generations: Iterable[UUID]) -> None:
    """For those whose logs are about to be forgotten."""
    now = timezone.now()
    await asyncio.gather(*(_settle(generation, now) for generation in generations))


async def _settle(generation: UUID, since: datetime) -> bool:
    age = timezone.now() - since
    try:
        done = await _last_word(generation)
    except GenerationUnknown:  # it never came there, or the engine was started again
        return age > ON_ITS_WAY and await run_in_db(booking.lapse, generation)
    except (EngineError, TimeoutError) as error:
        logger.debug("what %s took is not known yet: %r", generation, error)
        return age > LAPSES_AFTER and await run_in_db(booking.lapse, generation)
    return await run_in_db(booking.settle, generation, done.usage, done.timings, STATES[done.finish_reason])


async def _last_word(generation: UUID) -> Done:
    async with asyncio.timeout(SAID_WITHIN_S), aclosing(engines().attach(str(generation))) as events:
        async for event in events:
            if isinstance(event, Done):
                return event
    raise AssertionError("the engine's stream ended without Done")
