"""The chat's work for celery, as doors: each task calls one function on the worker's event loop."""

from __future__ import annotations

import logging
from uuid import UUID

from celery import shared_task

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.guests import expired_guests
from chatsite.accounts.models import User
from chatsite.chat import again, erasure, library, receipts
from chatsite.chat.adoption import adopt_orphans, reap
from chatsite.chat.owed import settle_owed
from chatsite.chat.running import Running
from chatsite.db import run_in_db
from chatsite.errors import NotFound
from chatsite.loop import run

logger = logging.getLogger(__name__)

# Within the worker's time limit; what is not finished then is handed over to the next run.
ADOPTED_WITHIN_S = 200.0
ERASE_BATCH = 100
AGAIN_KILLED_AFTER_S = 240

BEAT_SCHEDULE = {
    "chat-adopt-orphans": {"task": "chat.adopt_orphans", "schedule": 5.0, "options": {"expires": 4}},
    "chat-erase-temporary": {"task": "chat.erase_temporary", "schedule": 600.0, "options": {"expires": 590}},
    "chat-erase-guests": {"task": "chat.erase_guests", "schedule": 3600.0, "options": {"expires": 3590}},
    "chat-settle-erasures": {
        "task": "chat.settle_erasures",
        "schedule": receipts.SWEEP_EVERY_S,
        "options": {"expires": receipts.SWEEP_EVERY_S - 1},
    },
}


@shared_task(name="chat.adopt_orphans")
def adopt() -> int:
    """Finishes answers whose process died, and ends those past their deadline; how many it took over."""
    return run(_adopt())


@shared_task(name="chat.erase_temporary")
def erase_temporary() -> int:
    """Erases temporary conversations that nobody came back to; how many."""
    return run(_erase())


@shared_task(name="chat.erase_guests")
def erase_guests() -> int:
    """Erases guests whose seven days are over, with everything of theirs; how many."""
    return run(_erase_guests())


# Delivered once: who makes an answer again holds a place, and one that dies is not worth another try.
@shared_task(
    name="chat.make_again", acks_late=False, reject_on_worker_lost=False, time_limit=AGAIN_KILLED_AFTER_S
)
def make_again(run_id: str) -> bool:
    """Makes an answer once more, unseen; whether something came of it."""
    return run(again.make_ordered(UUID(run_id)))


@shared_task(name="chat.settle_erasures")
def settle_erasures() -> int:
    """Tells the stores that have not said yet what was erased; how many receipts are finished with it."""
    return run(_settle())


async def _adopt() -> int:
    into = Running()
    adopted = await adopt_orphans(into)
    await reap()
    await settle_owed()
    await into.drain(ADOPTED_WITHIN_S)
    return adopted


async def _erase() -> int:
    erased = 0
    for conversation in await library.forgotten_temporary(ERASE_BATCH):
        try:
            await erasure.erase(caller_of_user(conversation.owner), conversation.pk)
            erased += 1
        except NotFound:  # its owner was faster
            continue
    return erased


async def _erase_guests() -> int:
    erased = 0
    for guest in await run_in_db(expired_guests, ERASE_BATCH):
        try:
            await erasure.erase_user(guest)
            erased += 1
        except User.DoesNotExist:  # another worker was faster
            continue
    return erased


async def _settle() -> int:
    finished = 0
    for receipt in await run_in_db(receipts.unfinished):
        try:
            finished += await receipts.settle(receipt)
        except Exception:  # one that cannot be settled must not keep the younger ones waiting
            logger.exception("erasure %s could not be settled", receipt)
    await run_in_db(receipts.forget_old)
    return finished
