"""Lends the admin's trial an embedder under which everything is alike, as the project lends the engine's."""

from __future__ import annotations

from semcache.lending import Asked
from tests.semcache import factories


async def as_asked(text: str, tenant: str, owner: str, model: str) -> Asked | None:
    return Asked(
        factories.question(text, tenant=tenant, owner=owner, **({"model": model} if model else {})),
        factories.all_alike,
    )


async def nobody(text: str, tenant: str, owner: str, model: str) -> Asked | None:
    return None
