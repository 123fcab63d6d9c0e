"""Several people who ask the same under a rule that promotes, and are answered."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from semcache import service
from semcache.models import CacheEntry
from semcache.service import Answer, Decision
from tests.semcache.factories import all_alike, ask, question

TEXT, REWORDED = "Which plans include backup?", "Which of the plans include a backup?"
SAID = "Both plans include backup of up to 500 GB."
SAID_OTHERWISE = "Yes, both of the plans include backup of up to 500 GB."


async def answered(user: int, answer: str = SAID, text: str = TEXT, **changes: Any) -> UUID:
    """The user asks and the model answers, as if nothing had been found; the generation."""
    made_by = uuid4()
    asked = question(text, **({"owner": f"user:{user}"} | changes))
    decision = await service.lookup(asked, all_alike)
    await service.remember(decision, asked, Answer(answer, is_complete=True, generation=made_by))
    return made_by


async def asked_by(user: int, text: str = TEXT, **changes: Any) -> Decision:
    return await ask(text, all_alike, **({"owner": f"user:{user}"} | changes))


async def copies() -> list[CacheEntry]:
    return [entry async for entry in CacheEntry.objects.filter(source="promotion")]
