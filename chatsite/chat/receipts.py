"""Receipts of erasures: what each store says about it, and what some stores have still to be told.

The rows go in the transaction that issues the receipt. Everything else is told twice: at once, and again when whoever
was in the middle of something (an answer being made, a look-up not yet written) must have noticed. A store stands on
the receipt when it has answered the second time; one that cannot be reached is asked until it does. Names nobody:
what is pending are opaque names, and they go when the receipt is finished. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from django.db import transaction
from django.utils import timezone

from chatsite.accounts import departure
from chatsite.chat.ending import cancel_in_engine
from chatsite.chat.models import ErasureReceipt
from chatsite.chat.owed import settle_these
from chatsite.db import run_in_db
from chatsite.engines import engines
from chatsite.errors import NotFound
from inference.errors import EngineError
from inference.types import Owner
from semcache import flights, service

logger = logging.getLogger(__name__)

# Look-ups are written within two seconds, and whoever makes an answer notices within one that its row is gone. What
# takes longer, an answer made again, looks itself whether it was erased meanwhile.
AGAIN_AFTER = timedelta(seconds=10)
# Told by every process that erases; the promise is a minute.
SWEEP_EVERY_S = 10.0
BATCH = 100
FORGOTTEN_AT_ONCE = 16
KEPT = timedelta(days=366)

TWICE_TOLD = frozenset({"cache", "flights", "answers", "kv", "event_logs"})
OF_A_PERSON = frozenset({"sessions"})


class Traces(msgspec.Struct, frozen=True):
    """What other stores know erased rows by: answers, those of them in the making, owners of KV, a user's number."""

    generations: tuple[UUID, ...]
    live: tuple[UUID, ...]
    owners: tuple[Owner, ...]
    user: int | None = None


def issue(what: str, traces: Traces, erased: dict[str, int], kept: dict[str, int] | None = None) -> UUID:
    """A receipt with what was erased so far; `kept` is what stays without a name. In the erasing transaction."""
    now = timezone.now()
    # The cache's rows went in this transaction too, and go again with what comes late.
    found = {name: erased[name] for name in erased if name in TWICE_TOLD}
    stores = {name: _line(number, now) for name, number in erased.items() if name not in TWICE_TOLD}
    stores |= {name: _line(0, now) | {"kept": number} for name, number in (kept or {}).items()}
    pending = [{"traces": msgspec.to_builtins(traces), "found": found}]
    return ErasureReceipt.objects.create(what=what, pending=pending, stores=stores).pk


async def settle(receipt: UUID) -> bool:
    """Tells every store that has not said yet; whether all have. Harmless to repeat, also at the same time."""
    traces = await run_in_db(_owed, receipt)
    if traces is None:
        return True
    said = await _engine_told(traces)
    said |= await run_in_db(_database_told, traces, is_engine_told=bool(said))
    return await run_in_db(_book, receipt, said)


def unfinished() -> list[UUID]:
    """Receipts on which a store is missing, the oldest first."""
    waiting = ErasureReceipt.objects.filter(finished_at=None).order_by("requested_at")
    return list(waiting.values_list("pk", flat=True)[:BATCH])


def forget_old() -> int:
    """Receipts are proof for a year; how many were older."""
    old = ErasureReceipt.objects.filter(requested_at__lt=timezone.now() - KEPT, finished_at__isnull=False)
    return old.delete()[0]


def find(receipt: UUID) -> ErasureReceipt:
    """Raises NotFound."""
    row = ErasureReceipt.objects.filter(pk=receipt).first()
    if row is None:
        raise NotFound("There is no such receipt.")
    return row


def expected(row: ErasureReceipt) -> set[str]:
    """The stores that the finished receipt names."""
    is_person = row.what == ErasureReceipt.What.PERSON
    return set(row.stores) | TWICE_TOLD | (OF_A_PERSON if is_person else frozenset())


def _owed(receipt: UUID) -> Traces | None:
    row = find(receipt)
    return None if row.finished_at else msgspec.convert(row.pending[0]["traces"], Traces)


async def _engine_told(traces: Traces) -> dict[str, int | None]:
    """First what is being made ends, then what is kept of it goes. Nothing where the engine cannot be reached."""
    try:
        ended = [await cancel_in_engine(generation) for generation in traces.live]
        await settle_these(traces.live)
        whole = [owner for owner in traces.owners if not owner.conversation]
        blocks = [await engines().forget(owner) for owner in whole]
        # What a user has in memory is counted by now: the rest may overlap, for it is on disk or nowhere.
        at_once = asyncio.Semaphore(FORGOTTEN_AT_ONCE if whole else 1)

        async def forgotten(owner: Owner) -> int:
            async with at_once:
                return await engines().forget(owner)

        blocks += await asyncio.gather(*(forgotten(owner) for owner in traces.owners if owner.conversation))
    except EngineError as error:
        logger.warning("the engine was not told what was erased: %s", error.message)
        return {}
    return {"answers": sum(ended), "kv": sum(blocks), "event_logs": None}


def _database_told(traces: Traces, *, is_engine_told: bool) -> dict[str, int | None]:
    """What was written after the rows were gone. Who may end an answer that others wait for is read off its flight."""
    with transaction.atomic():
        said: dict[str, int | None] = {"cache": service.forget(traces.generations)}
        if is_engine_told:
            said["flights"] = flights.forget(traces.generations)
    if traces.user is not None:
        said["sessions"] = departure.end_sessions(traces.user)
    return said


@transaction.atomic
def _book(receipt: UUID, said: dict[str, int | None]) -> bool:
    row = ErasureReceipt.objects.select_for_update().get(pk=receipt)
    if row.finished_at is not None:
        return True
    now, found = timezone.now(), row.pending[0]["found"]
    for name, number in said.items():
        found[name] = None if number is None else found.get(name, 0) + number
        if now >= row.requested_at + AGAIN_AFTER:
            row.stores[name] = _line(found[name], now)
    if expected(row) <= row.stores.keys():
        row.pending, row.finished_at = [], now
    row.save()
    return row.finished_at is not None


def _line(erased: int | None, at: datetime) -> dict[str, Any]:
    """None: not counted."""
    return {"erased": erased, "at": at.isoformat()}
