"""A question in a conversation: refuse, or store and answer. The doors of the page call this and nothing deeper.

What is stored goes through `reply.answer` in a task that belongs to no socket. Knows no transport.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from chatsite.chat import feedback, generations, prompt, store
from chatsite.chat.admission import counting_refusals
from chatsite.chat.live import LiveAnswer
from chatsite.chat.models import LIVE_STATES, Message
from chatsite.chat.reply import answer
from chatsite.chat.running import running
from chatsite.chat.store import Question, Stored
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.engines import served

# A second question waits for the answer above it, because that is part of what the model is given.
WAIT_STEP_S = 0.1


@dataclass(frozen=True, slots=True)
class Asked:
    """A durable question and its answer; `live` is None when the answer is made by another process, or was made."""

    stored: Stored
    live: LiveAnswer | None


async def ask(caller: Caller, question: Question) -> Asked:
    """Stores the question and starts its answer. Raises ReplyRefused and RequestError, with nothing stored."""
    storing = run_in_db(store.store_question, caller, question, await served())
    stored = await counting_refusals(storing)
    return _begin(caller, stored, is_refresh=False)


async def ask_again(caller: Caller, client_message_id: UUID, message: UUID) -> Asked:
    """Starts another answer to the same question; the cache is refreshed, not read."""
    storing = run_in_db(store.store_regeneration, caller, client_message_id, message, await served())
    stored = await counting_refusals(storing)
    if stored.is_new:
        await feedback.asked_again(caller, message)
    return _begin(caller, stored, is_refresh=True)


async def go_on(caller: Caller, client_message_id: UUID, message: UUID) -> Asked:
    """Starts an answer that goes on where this one ended. Raises NotContinuable unless that ended for its length."""
    storing = run_in_db(store.store_continuation, caller, client_message_id, message, await served())
    return _begin(caller, await counting_refusals(storing), is_refresh=False)


def _begin(caller: Caller, stored: Stored, *, is_refresh: bool) -> Asked:
    if not stored.is_new:
        return Asked(stored, running().get(stored.generation))
    work = partial(_answer, caller, stored, is_refresh)
    return Asked(stored, running().begin(LiveAnswer(stored.generation, stored.begun), work))


async def _answer(caller: Caller, stored: Stored, is_refresh: bool, live: LiveAnswer) -> None:
    if stored.parent is not None:
        # The answer above may be another process's: the database is the only place where both look.
        while await run_in_db(_is_above_unfinished, stored):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(WAIT_STEP_S)
    turn = await run_in_db(prompt.turn_of, caller, stored, is_refresh=is_refresh)
    await answer(turn, live)


def _is_above_unfinished(stored: Stored) -> bool:
    """Whether the answer above is still being made. Keeps our lease, and stops waiting when we were stopped."""
    assert stored.parent is not None
    above = Message.objects.filter(pk=stored.parent, state__in=LIVE_STATES)
    return above.exists() and generations.renew(stored.generation)
