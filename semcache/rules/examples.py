"""How near a question is to the example questions of rules.

Keeps the examples' vectors in memory, one set for each embedder, so that a question costs no more than its own vector.
Knows no database and no rule that words can choose; the embedder is a callable.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from semcache.rules.policy import Rule
from semcache.text.normalize import canonical

KEPT_VECTORS = 5000

Vector = Sequence[float]
Embed = Callable[[list[str]], Awaitable[Sequence[Vector]]]


@dataclass(frozen=True, slots=True)
class Likeness:
    """The nearest example of a rule; `is_near` by the rule's own threshold."""

    rule_id: int
    example: str
    similarity: float
    is_near: bool


class ExampleBook:
    """For one event loop at a time."""

    def __init__(self) -> None:
        self._vectors: dict[tuple[str, str], Vector] = {}
        self._under_way: dict[tuple[str, tuple[str, ...]], asyncio.Task[dict[str, Vector]]] = {}

    @property
    def num_kept(self) -> int:
        return len(self._vectors)

    async def compared(
        self, rules: Iterable[Rule], vector: Vector, embedder: str, embed: Embed
    ) -> tuple[Likeness, ...]:
        """The likeness to each of `rules`, all of which have examples. Raises whatever `embed` raises."""
        texts = {rule: [canonical(example) for example in rule.examples] for rule in rules}
        known = await self._known(embedder, [text for listed in texts.values() for text in listed], embed)
        return tuple(
            _nearest(rule, vector, {text: known[text] for text in listed}) for rule, listed in texts.items()
        )

    async def _known(self, embedder: str, texts: Iterable[str], embed: Embed) -> dict[str, Vector]:
        """Nobody who asks first and gives up takes the work along: the next one finds it done."""
        known = {text: self._vectors.get((embedder, text)) for text in texts}
        missing = tuple(text for text, vector in known.items() if vector is None)
        new = await asyncio.shield(self._work(embedder, missing, embed)) if missing else {}
        return {text: vector for text, vector in known.items() if vector is not None} | new

    def _work(self, embedder: str, texts: tuple[str, ...], embed: Embed) -> asyncio.Task[dict[str, Vector]]:
        """One piece of work for all who need the same."""
        task = self._under_way.get((embedder, texts))
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.create_task(self._embed(embedder, texts, embed))
            self._under_way[embedder, texts] = task
            task.add_done_callback(lambda _: self._under_way.pop((embedder, texts), None))
        return task

    async def _embed(self, embedder: str, texts: tuple[str, ...], embed: Embed) -> dict[str, Vector]:
        new = dict(zip(texts, await embed(list(texts)), strict=True))
        if len(self._vectors) + len(new) > KEPT_VECTORS:
            self._vectors.clear()  # those of rules long gone; what is still asked for comes back
        self._vectors |= {(embedder, text): vector for text, vector in new.items()}
        return new


def _nearest(rule: Rule, vector: Vector, examples: Mapping[str, Vector]) -> Likeness:
    similarity, example = max((_cosine(vector, near), text) for text, near in examples.items())
    return Likeness(rule.id, example, similarity, is_near=similarity >= rule.example_similarity)


def _cosine(one: Vector, other: Vector) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    # Rounded, so that a question equal to an example reaches 1.
    return round(sum(map(mul, one, other)) / lengths, 6) if lengths else 0.0
