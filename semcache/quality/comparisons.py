"""What the model says now beside a stored answer: staff asks for it, a worker has it made, a page shows both.

One at a time for each person, for each takes a worker's time and the engine's. Nothing is stored in the cache and
nothing is counted. The texts are kept for a day at most, and go before when what they were made from is erased.
Knows no pages and no engine: the answer is lent (`lending`).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from semcache import lending
from semcache.decision import Decision
from semcache.lending import NotMade, WhyNot
from semcache.models import CacheComparison, CacheEntry
from semcache.quality import sameness
from semcache.text.normalize import clean

logger = logging.getLogger(__name__)

State = CacheComparison.State
OPEN = (State.WAITING, State.RUNNING)
KEPT = timedelta(days=1)
# What the project lends may keep its own time; past this one it is given up whatever it does.
MADE_WITHIN_S = 220.0
# A worker that has not said anything by then is dead.
ENDED_WITHIN = timedelta(seconds=MADE_WITHIN_S + 80)
TAKEN_WITHIN = timedelta(minutes=10)
MAX_CHARS = 200_000
# Beside `WhyNot`: no worker came, or the one that did died; the answer is none, or not a whole one.
NOT_TAKEN, DIED, FAILED, EMPTY, CUT_OFF = "not-taken", "died", "failed", "empty", "cut-off"


class NoSuchAnswer(Exception):
    """The stored answer is gone, or there is none to compare with."""


class StillMaking(Exception):
    """The same person's last comparison has not ended."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The question that is put to the model, as the page tries it."""

    text: str
    tenant: str = ""
    owner: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """Columns of a comparison that ended."""

    made: str = ""
    is_whole: bool = False
    is_same: bool | None = None
    score: float | None = None
    took_ms: float = 0.0
    trouble: str = ""


@transaction.atomic
def begin(wanted: Wanted, entry_id: int, author: str) -> CacheComparison:
    """For a worker. Raises NoSuchAnswer and StillMaking."""
    # Who erases the answer at this moment waits for this row, and then deletes it, too.
    entry = CacheEntry.objects.select_for_update().filter(pk=entry_id).first()
    if entry is None:
        raise NoSuchAnswer
    give_up()  # where no worker runs, nobody else does
    try:
        with transaction.atomic():
            return CacheComparison.objects.create(
                author=author,
                question=clean(wanted.text),
                tenant=wanted.tenant,
                owner=wanted.owner,
                model=wanted.model,
                entry=entry.pk,
                generation=entry.generation,
                stored_question=entry.question,
                stored_answer=entry.answer,
                created_at=Now(),
            )
    except IntegrityError:
        raise StillMaking from None


def nearest(decision: Decision | None) -> int:
    """The entry that is served, would be, or comes nearest. Raises NoSuchAnswer."""
    found = decision and (decision.hit or decision.would_hit)
    if found:
        return found.entry_id
    if decision is None or not decision.candidates:
        raise NoSuchAnswer
    return decision.candidates[0].entry_id


def make_next() -> int:
    """Has the oldest waiting one made, here and now; 0 when there is none. For processes without an event loop."""
    row = CacheComparison.objects.filter(state=State.WAITING).order_by("pk").first()
    if row is None:
        return 0
    taken = CacheComparison.objects.filter(pk=row.pk, state=State.WAITING)
    if taken.update(state=State.RUNNING, started_at=Now()):
        _end(row.pk, lending.run(compared, _wanted(row), row.stored_answer))
    return 1


async def compared(wanted: Wanted, stored: str) -> Result:
    """What the model says, and whether that is the stored answer. Never raises: trouble is a result, too."""
    try:
        async with asyncio.timeout(MADE_WITHIN_S):
            return await _compared(wanted, stored)
    except NotMade as error:
        return Result(trouble=error.why.value)
    except TimeoutError:
        return Result(trouble=WhyNot.TOO_LATE.value)
    except OSError as error:
        logger.warning("nothing was compared: %s", error)
        return Result(trouble=WhyNot.AWAY.value)
    except Exception:  # whatever the lent function raises, whoever waits must see that it ended
        logger.exception("a comparison failed")
        return Result(trouble=FAILED)


async def _compared(wanted: Wanted, stored: str) -> Result:
    asked = await lending.lent(wanted.text, wanted.tenant, wanted.owner, wanted.model)
    if asked is None:
        raise NotMade(WhyNot.AWAY)
    answer = await lending.answered(uuid4(), wanted.text, wanted.tenant, wanted.model)
    made = clean(answer.text)[:MAX_CHARS]
    if not made.strip():
        return Result(took_ms=answer.took_ms, trouble=EMPTY)
    if not answer.is_complete or len(made) < len(answer.text):
        return Result(made, took_ms=answer.took_ms, trouble=CUT_OFF)
    found = await sameness.compared(stored, made, asked.verify)
    return Result(made, True, found.is_same, found.score, answer.took_ms)


def give_up() -> int:
    """Ends those that no worker took, and those whose worker died; how many."""
    late = {
        NOT_TAKEN: Q(state=State.WAITING, created_at__lt=Now() - TAKEN_WITHIN),
        DIED: Q(state=State.RUNNING, started_at__lt=Now() - ENDED_WITHIN),
    }
    return sum(
        CacheComparison.objects.filter(which).update(state=State.FAILED, trouble=why, ended_at=Now())
        for why, which in late.items()
    )


def delete_old() -> int:
    """Deletes what is a day old; how many there were."""
    return CacheComparison.objects.filter(created_at__lt=Now() - KEPT).delete()[0]


def _wanted(row: CacheComparison) -> Wanted:
    return Wanted(row.question, row.tenant, row.owner, row.model)


def _end(pk: int, result: Result) -> None:
    """Not one that was given up or erased meanwhile."""
    values: dict[str, Any] = {field.name: getattr(result, field.name) for field in fields(Result)}
    state = State.DONE if result.made else State.FAILED
    running = CacheComparison.objects.filter(pk=pk, state=State.RUNNING)
    running.update(**values, state=state, ended_at=Now())
