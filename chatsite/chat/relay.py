"""From the engine's events, or a stored answer, to the live text: what followers see is exactly what is stored.

Knows the engine's events and the live answer; knows no database and no transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from django.conf import settings

from chatsite.chat import outcome
from chatsite.chat.events import Reading, Waiting
from chatsite.chat.models import Origin, State
from chatsite.chat.outcome import Outcome
from chatsite.chat.record import Record
from chatsite.chat.texts import cleaned
from inference.types import Delta, Done, Event, FinishReason, Prefill, Queued, Usage
from semcache.service import Decision, Hit
from semcache.service import Outcome as Found

# A replay is quick, but not one block: the page's streaming path serves both. 8 x 40 ms stays far below 600 ms.
REPLAY_PIECES = 8
REPLAY_PAUSE_S = 0.04
# Paced it lasts as long as the answer took, within reason, or as one of its length would where that is not known.
PACED_PAUSE_S = 0.1
LONGEST_PACED_S = 60.0
CHARS_PER_S = 100


async def relay(events: AsyncIterator[Event], record: Record) -> Outcome:
    """Writes the engine's events into the live answer until Done. Raises the client's errors."""
    live = record.live
    async for event in events:
        match event:
            case Delta(seq, text, token_ids, logprobs):
                record.add_text(seq, cleaned(text), token_ids, logprobs)
            case Queued(position):
                live.say(Waiting(live.generation, position))
            case Prefill(done, total):
                live.say(Reading(live.generation, done, total))
            case Done():
                return outcome.of_done(event)
    raise AssertionError("the engine's stream ended without Done")


async def replay(decision: Decision, hit: Hit, record: Record) -> Outcome:
    """Writes a stored answer in a few pieces, or as slowly as it was made where others must not learn by the clock."""
    record.tokenizer = hit.tokenizer
    lasts_s = _paced_s(hit) if _is_paced(decision) else 0.0
    pieces = _pieces(hit.answer, max(REPLAY_PIECES, round(lasts_s / PACED_PAUSE_S)))
    for number, piece in enumerate(pieces, 1):
        if lasts_s or number > 1:
            await asyncio.sleep(lasts_s / len(pieces) or REPLAY_PAUSE_S)
        # The ledger is whole or empty: it goes with the last piece.
        record.add_text(number, piece, hit.token_ids if number == len(pieces) else ())
    return Outcome(
        State.COMPLETE,
        FinishReason.STOP.value,
        origin=Origin.EXACT if decision.outcome is Found.HIT_EXACT else Origin.SEMANTIC,
        cache_entry=hit.entry_id,
        cache_age_s=hit.age_s,
        cache_is_stale=hit.is_stale,
        spared=Usage(generated_tokens=hit.num_tokens),
        spared_ms=hit.took_ms,
        spared_by=hit.generation,
    )


def _is_paced(decision: Decision) -> bool:
    """Also a person's own answers under a rule that shares: else the others would stand out."""
    shares = decision.rule is not None and decision.rule.sharing != "private"
    return shares and bool(settings.CONFIG.cache_paced_replay)


def _paced_s(hit: Hit) -> float:
    return min(hit.took_ms / 1000 or len(hit.answer) / CHARS_PER_S, LONGEST_PACED_S)


def _pieces(text: str, num: int) -> list[str]:
    """At most `num` of equal size."""
    size = -(-len(text) // num)
    return [text[start : start + size] for start in range(0, len(text), size)]
