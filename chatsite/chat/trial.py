"""The semantic cache as staff try it: a question as the first of a new chat without a system prompt would ask it.

Lends the engine's embedder and verifier to the cache's admin and to its work in the background. Whose answers are
looked at is said by the admin.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from chatsite.chat.semantic import embedding_by, question_of, verify
from chatsite.chat.turn import Caller, Turn
from chatsite.engine import engine, engine_info
from inference.errors import EngineError
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
    return Asked(question, embedding_by(info.embedder), verify if info.verifier else None, is_busy)


async def is_busy() -> bool:
    """Whether questions wait for the engine; also while it does not say."""
    try:
        return (await engine().stats()).waiting > 0
    except EngineError:
        return True
