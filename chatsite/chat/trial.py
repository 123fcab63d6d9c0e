"""The semantic cache as staff try it: a question as the first of a new chat without a system prompt would ask it.

Lends the engine's embedder and verifier to the cache's admin and to its work in the background, and the model itself
where staff want to see what it says now. Whose answers are looked at is said by the admin.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from uuid import UUID, uuid4

from chatsite.accounts.models import Tenant
from chatsite.chat import again
from chatsite.chat.semantic import embedding_by, question_of, verify
from chatsite.chat.turn import Caller, Turn
from chatsite.db import run_in_db
from chatsite.engines import engines, served
from inference.errors import EngineError
from inference.types import Owner, Segment
from semcache.lending import Asked, NotMade, WhyNot
from semcache.service import Answer

logger = logging.getLogger(__name__)


async def as_asked(text: str, tenant: str, owner: str, model: str = "") -> Asked | None:
    """None while the engine does not say what it serves: then nobody knows which answers would fit."""
    known = await served()
    info = known.chosen(model)
    if info is None:
        return None
    question = replace(question_of(_turn(uuid4(), text, tenant), info, known.embedder), owner=owner)
    return Asked(question, embedding_by(known.embedder), verify if known.verifier else None, is_busy)


async def answered(run: UUID, text: str, tenant: str, model: str) -> Answer:
    """The model's own answer, as the budget has answers made again. Raises NotMade.

    Under a name that nobody has: staff's words must reach nobody's KV, and are forgotten there at once.
    """
    info = (await served()).chosen(model)
    if info is None:
        raise NotMade(WhyNot.AWAY)
    turn = _turn(run, text, await run_in_db(_known, tenant))
    making = again.Making(
        run=run,
        tenant=turn.caller.tenant,
        owner=f"trial:{run}",
        segments=turn.segments,
        sampling=replace(turn.sampling, temperature=0.0),
        revision=info.revision,
        model=info.model,
    )
    try:
        return await again.made(making)
    finally:
        await _forgotten(Owner(making.tenant, making.owner))


def _turn(generation: UUID, text: str, tenant: str) -> Turn:
    return Turn(
        caller=Caller(user_id=0, tenant=tenant), generation=generation, segments=(Segment("user", text),)
    )


def _known(tenant: str) -> str:
    """The business line that the work is booked on: staff may name one that does not exist, or none."""
    named = Tenant.objects.filter(pk=int(tenant)).first() if tenant.isdecimal() and len(tenant) < 10 else None
    return str((named or Tenant.objects.default()).pk)


async def _forgotten(owner: Owner) -> None:
    try:
        await engines().forget(owner)
    except EngineError as error:  # its KV goes like all others that nobody comes back to
        logger.info("the KV of %s is not forgotten yet: %s", owner.user, error)


async def is_busy() -> bool:
    """Whether questions wait for the engine that embeds; also while it does not say."""
    try:
        return (await (await engines().encoder()).client.stats()).waiting > 0
    except EngineError:
        return True
