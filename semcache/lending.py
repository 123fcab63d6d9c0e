"""What the project lends the cache for work that no question pays for: trials, imports, vectors made anew.

What is known of the model and its embedder is lent by the project, whose setting SEMCACHE_ASKED_BY names the lender: an
asynchronous function of text, tenant and owner that gives an `Asked`, or None while there is nobody to ask.
SEMCACHE_RUN_BY names what runs such work to its end in a process that has no event loop of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.module_loading import import_string

from semcache.decision import Embed, Question, Verify

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with everything that a look-up needs. `embed` is that of `question.embedder` and no other.

    `is_busy` says whether somebody waits for the engine, so that work nobody waits for stays away.
    """

    question: Question
    embed: Embed
    verify: Verify | None = None
    is_busy: Callable[[], Awaitable[bool]] | None = None


async def lent(text: str, tenant: str, owner: str) -> Asked | None:
    """The question as the first of a new chat without a system prompt; None while nobody lends an embedder."""
    lender = getattr(settings, "SEMCACHE_ASKED_BY", "")
    return await import_string(lender)(text, tenant, owner) if lender else None


def run(work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """The result of `work(*args)`, for workers and commands; what is lent may hang on one loop that stays."""
    runner = getattr(settings, "SEMCACHE_RUN_BY", "")
    return import_string(runner)(work(*args)) if runner else async_to_sync(work)(*args)
