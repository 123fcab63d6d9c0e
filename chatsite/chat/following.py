"""How a door follows an answer that it did not start: one made here, one made by another process, or a finished one.

All three are a `LiveAnswer`. An answer of another process is read from the engine's log, from the last checkpoint on,
and its end from the database. Knows no transport.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from uuid import UUID

from django.db import Error as DatabaseError

from chatsite.chat import flight, outcome
from chatsite.chat.events import Counts, Durations, Ended, Reading, Waiting
from chatsite.chat.live import HandedOver, LiveAnswer
from chatsite.chat.models import FINAL_STATES, Generation, Origin, State
from chatsite.chat.pace import AT_END
from chatsite.chat.running import running, work_to_end
from chatsite.chat.tail import events_of
from chatsite.chat.texts import cleaned
from chatsite.db import run_in_db
from chatsite.engines import engines
from chatsite.errors import NotFound
from inference.errors import EngineError
from inference.types import Delta, Prefill, Queued

logger = logging.getLogger(__name__)

# How often the database is asked for the end, once the engine has nothing more to say.
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Followed:
    """A generation and its live text; `live` follows another process until the context ends."""

    generation: Generation
    live: LiveAnswer

    @property
    def answer(self) -> UUID:
        assert self.generation.message is not None
        return self.generation.message.pk

    @property
    def conversation(self) -> UUID:
        assert self.generation.message is not None
        return self.generation.message.conversation_id


@asynccontextmanager
async def followed(user_id: int, generation: UUID) -> AsyncIterator[Followed]:
    """The user's generation, to be followed inside the context. Raises NotFound, also for somebody else's."""
    row = await run_in_db(load, user_id, generation)
    here = running().get(generation)
    if here is not None:
        yield Followed(row, here)
        return
    live = LiveAnswer(generation, _text(row), row.stored_seq)
    if row.state in FINAL_STATES:
        live.say(ended_of(row))
        yield Followed(row, live)
        return
    mirroring = asyncio.create_task(_mirroring(live))
    try:
        yield Followed(row, live)
    finally:
        mirroring.cancel()
        await asyncio.gather(mirroring, return_exceptions=True)


async def wait_end(user_id: int, generation: UUID, patience_s: float) -> None:
    """Returns when the answer has ended, or the patience has; meanwhile it counts as followed. Raises NotFound."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            while not await _has_ended(user_id, generation):  # noqa: ASYNC110 - another process takes it over soon
                await asyncio.sleep(POLL_S)


async def _has_ended(user_id: int, generation: UUID) -> bool:
    """Follows it to its end; False when the process that makes it gave it up meanwhile."""
    try:
        async with followed(user_id, generation) as found:
            async for _ in events_of(found.live, AT_END):
                pass
    except HandedOver:
        return False
    return True


def load(user_id: int, generation: UUID) -> Generation:
    """The user's generation of a conversation with its message. Raises NotFound."""
    rows = Generation.objects.select_related("message")
    row = rows.filter(pk=generation, user=user_id, message__conversation__owner=user_id).first()
    if row is None:
        raise NotFound("there is no such generation.")
    return row


def ended_of(row: Generation) -> Ended:
    """The stored end of a generation as an event."""
    state = State(row.state)
    is_failure = state in (State.FAILED, State.INTERRUPTED)
    return Ended(
        row.pk,
        state=state,
        finish_reason=row.finish_reason,
        origin=Origin(row.origin),
        counts=Counts(
            row.prompt_tokens,
            row.reused_tokens,
            row.prefilled_tokens,
            row.generated_tokens,
            row.trimmed_messages,
        ),
        durations=Durations(row.queue_ms, row.prefill_ms, row.decode_ms, 0.0, row.ttft_ms),
        model=row.model,
        cache_age_s=row.cache_age_s,
        cache_is_stale=row.cache_is_stale,
        error_code=row.error_code,
        is_retryable=is_failure and row.error_code not in outcome.FINAL_CODES,
    )


async def _mirroring(live: LiveAnswer) -> None:
    """Mirrors to the end; a mirror that breaks lets its follower try again."""
    try:
        await work_to_end(live, _mirror)
    finally:
        if not live.is_over:
            live.fail(HandedOver())


async def _mirror(live: LiveAnswer) -> None:
    """Fills `live` from the engine's log while there is one, and ends it with what the database says."""
    while True:
        try:
            await _read_log(live)
        except EngineError:
            # Not submitted yet, a cache hit, or lost: the database knows, now or soon.
            await asyncio.sleep(POLL_S)
        try:
            row = await run_in_db(_row, live.generation)
        except DatabaseError as error:
            logger.warning("the end of %s can't be read yet: %s", live.generation, error)
        else:
            if row.state in FINAL_STATES:
                _end(live, row)
                return
        await asyncio.sleep(POLL_S)


def _end(live: LiveAnswer, row: Generation) -> None:
    live.stored_text = text = _text(row)
    if text.startswith(live.text) and len(text) > live.length:
        live.add_text(row.stored_seq, text[live.length :], 1)
    live.say(ended_of(row))


async def _read_log(live: LiveAnswer) -> None:
    maker = await flight.leader_of(live.generation)
    async with aclosing(engines().attach(str(maker), after=live.seq)) as events:
        async for event in events:
            match event:
                case Delta(seq, text, token_ids):
                    live.add_text(seq, cleaned(text), max(1, len(token_ids)))
                case Queued(position):
                    live.say(Waiting(live.generation, position))
                case Prefill(done, total):
                    live.say(Reading(live.generation, done, total))


def _row(generation: UUID) -> Generation:
    return Generation.objects.select_related("message").get(pk=generation)


def _text(row: Generation) -> str:
    return row.message.text if row.message is not None else ""
