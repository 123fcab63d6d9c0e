"""Lends a model that answers as a test says."""

from __future__ import annotations

from uuid import UUID

from semcache.decision import Answer

NOW = Answer("At ten. Ring the bell.", is_complete=True, took_ms=1234.0)


class Model:
    """What it says next, or raises, and what it was asked."""

    def __init__(self) -> None:
        self.says: Answer | Exception = NOW
        self.asked: list[tuple[str, str, str]] = []

    async def answered(self, run: UUID, text: str, tenant: str, model: str) -> Answer:
        self.asked.append((text, tenant, model))
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


model = Model()


async def answered(run: UUID, text: str, tenant: str, model_name: str) -> Answer:
    return await model.answered(run, text, tenant, model_name)
