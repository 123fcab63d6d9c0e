"""What the project lends the cache for work that no question pays for: trials, imports, vectors made anew.

What is known of the model and its embedder is lent by the project, whose setting SEMCACHE_ASKED_BY names the lender: an
asynchronous function of text, tenant and owner that gives an `Asked`, or None while there is nobody to ask.
SEMCACHE_RUN_BY names what runs such work to its end in a process that has no event loop of its own.
SEMCACHE_ANSWERED_BY names who lets the model itself answer, for staff to compare.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.module_loading import import_string

from semcache.decision import Answer, Embed, Question, Verify

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


class WhyNot(StrEnum):
    """Why the model gave no answer."""

    AWAY = "away"
    BUSY = "busy"
    OTHER_MODEL = "other-model"
    REFUSED = "refused"
    TOO_LATE = "too-late"


class NotMade(Exception):
    """The model gave no answer."""

    def __init__(self, why: WhyNot) -> None:
        super().__init__(why.value)
        self.why = why


async def lent(text: str, tenant: str, owner: str, model: str = "") -> Asked | None:
    """The question as the first of a new chat without a system prompt; None while nobody lends an embedder.

    `model` is the one that it is put to; "" for the one that answers where none is named.
    """
    lender = getattr(settings, "SEMCACHE_ASKED_BY", "")
    return await import_string(lender)(text, tenant, owner, model) if lender else None


def may_be_answered() -> bool:
    """Whether the project lends the model itself."""
    return bool(getattr(settings, "SEMCACHE_ANSWERED_BY", ""))


async def answered(run: UUID, text: str, tenant: str, model: str) -> Answer:
    """What the model says to the same question by default, with the words that it finds likeliest. Raises NotMade.

    Charged to nobody, stored nowhere, named `run`.
    """
    made: Answer = await import_string(settings.SEMCACHE_ANSWERED_BY)(run, text, tenant, model)
    return made


def run(work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """The result of `work(*args)`, for workers and commands; what is lent may hang on one loop that stays."""
    runner = getattr(settings, "SEMCACHE_RUN_BY", "")
    return import_string(runner)(work(*args)) if runner else async_to_sync(work)(*args)
