"""The semantic cache as staff try it: a question as the first of a new chat without a system prompt would ask it.

Lends the cache's admin the engine's embedder and verifier; whose answers are looked at is said by the admin.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from chatsite.chat.semantic import embed, question_of, verify
from chatsite.chat.turn import Caller, Turn
from chatsite.engine import engine_info
from inference.types import Segment
from semcache.lending import Asked


async def as_asked(text: str, tenant: str, owner: str) -> Asked | None:
    """None while the engine does not say what it serves: then nobody knows which answers would fit."""
    info = await engine_info()
    if info is None:
        return None
    turn = Turn(
        caller=Caller(user_id=0, tenant=tenant), generation=uuid4(), segments=(Segment("user", text),)
    )
    question = replace(question_of(turn, info), owner=owner)
    return Asked(question, embed, verify if info.verifier else None)
