"""From the engine's events, or a stored answer, to the live text: what followers see is exactly what is stored.

Knows the engine's events and the live answer; knows no database and no transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from chatsite.chat import outcome
from chatsite.chat.events import Reading, Waiting
from chatsite.chat.models import Origin, State
from chatsite.chat.outcome import Outcome
from chatsite.chat.record import Record
from chatsite.chat.texts import cleaned
from inference.types import Delta, Done, Event, FinishReason, Prefill, Queued
from semcache.service import Decision, Hit
from semcache.service import Outcome as Found

# A replay is quick, but not one block: the page's streaming path serves both. 8 x 40 ms stays far below 600 ms.
REPLAY_PIECES = 8
REPLAY_PAUSE_S = 0.04


async def relay(events: AsyncIterator[Event], record: Record) -> Outcome:
    """Writes the engine's events into the live answer until Done. Raises the client's errors."""
    live = record.live
    async for event in events:
        match event:
            case Delta(seq, text, token_ids):
                record.add_text(seq, cleaned(text), token_ids)
            case Queued(position):
                live.say(Waiting(live.generation, position))
            case Prefill(done, total):
                live.say(Reading(live.generation, done, total))
            case Done():
                return outcome.of_done(event)
    raise AssertionError("the engine's stream ended without Done")


async def replay(decision: Decision, hit: Hit, record: Record) -> Outcome:
    """Writes a stored answer in a few pieces, as if it were being made."""
    record.tokenizer = hit.tokenizer
    size = -(-len(hit.answer) // REPLAY_PIECES)
    for number, start in enumerate(range(0, len(hit.answer), size), 1):
        if number > 1:
            await asyncio.sleep(REPLAY_PAUSE_S)
        # The ledger is whole or empty: it goes with the last piece.
        is_last = start + size >= len(hit.answer)
        record.add_text(number, hit.answer[start : start + size], hit.token_ids if is_last else ())
    return Outcome(
        State.COMPLETE,
        FinishReason.STOP.value,
        origin=Origin.EXACT if decision.outcome is Found.HIT_EXACT else Origin.SEMANTIC,
        cache_entry=hit.entry_id,
        cache_age_s=hit.age_s,
    )
