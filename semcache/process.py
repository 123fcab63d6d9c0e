"""What this process keeps in memory: the rules as read lately, the examples' vectors, and what is not yet written.

Hits, hours and look-ups are collected and written in batches, within two seconds or when a batch is full.
"""

from __future__ import annotations

import asyncio
import logging

from django.db import Error

from semcache.breaker import Breaker
from semcache.quality.hours import HourCounter
from semcache.quality.question_log import Looked, QuestionLog
from semcache.rules.examples import ExampleBook
from semcache.rules.rulebook import RuleBook
from semcache.storage.threads import in_database
from semcache.storage.usage import FLUSH_AFTER_S, HitCounter

logger = logging.getLogger(__name__)

rules = RuleBook()
examples = ExampleBook()
hits = HitCounter()
hours = HourCounter()
looks = QuestionLog()
store_breaker = Breaker()
embedder_breaker = Breaker()
verifier_breaker = Breaker()
_flushes: set[asyncio.Task[None]] = set()


def note(looked: Looked | None) -> None:
    """Keep one look-up for the log; None is what must not be kept."""
    if looked is not None:
        write_soon(is_full=looks.add(looked))


def write_soon(*, is_full: bool) -> None:
    """See to it that somebody writes what is in memory: at once when a batch is full, else within two seconds."""
    loop = asyncio.get_running_loop()
    if is_full or not any(task.get_loop() is loop for task in _flushes):
        task = loop.create_task(_flush_after(0.0 if is_full else FLUSH_AFTER_S))
        _flushes.add(task)
        task.add_done_callback(_flushes.discard)


async def _flush_after(delay_s: float) -> None:
    await asyncio.sleep(delay_s)
    try:
        await in_database(flush)
    except Error:
        logger.warning("hits and look-ups could not be written; they wait for the next one", exc_info=True)


def flush() -> int:
    """Write all of it; how many entries were hit. For database threads."""
    looks.flush()
    hours.flush()
    return hits.flush()
