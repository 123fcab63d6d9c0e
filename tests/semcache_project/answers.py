"""Answers of a model, out of the cache where it has them; docs/semcache/library.md shows the last function."""

from __future__ import annotations

from collections.abc import Sequence

from semcache import service
from semcache.service import Answer, Question

generated: list[str] = []


async def embed(texts: list[str]) -> Sequence[Sequence[float]]:
    """Any function will do: here a text's vector says how often it has each letter."""
    return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


async def generate(text: str) -> str:
    """Stands for the project's model."""
    generated.append(text)
    return f"answer {len(generated)}"


async def answered(text: str, user: str) -> str:
    question = Question(
        text, history="", tenant="shop", owner=user, model="my-model", model_revision="1", system_prompt="",
        parameters="", temperature=0.0, embedder="letters-1",
    )  # fmt: skip
    decision = await service.lookup(question, embed)
    if decision.hit:
        return decision.hit.answer
    answer = await generate(text)
    await service.remember(decision, question, Answer(answer, is_complete=True))
    return answer
