"""Plain makers of what the cache's tests need, and the embedders they stand on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.utils import timezone

from semcache.models import CacheEntry, CacheRule
from semcache.service import Answer, Decision, Question, lookup, remember

# That of multilingual-e5-small; any other would do.
EMBEDDING_DIM = 384
Embed = Callable[[list[str]], Awaitable[list[Sequence[float]]]]


def question(text: str, **changes: Any) -> Question:
    values: dict[str, Any] = {
        "text": text,
        "history": "",
        "tenant": "default",
        "owner": "user:1",
        "model": "small",
        "model_revision": "small@1",
        "system_prompt": "",
        "parameters": "{}",
        "temperature": None,
        "embedder": "test-embedder",
    }
    return Question(**(values | changes))


def rule(**changes: Any) -> CacheRule:
    """The only rule of a test: a semantic one of the owner's own, unless changed."""
    values = {
        "name": f"rule {CacheRule.objects.count()}",
        "mode": "semantic",
        "sharing": "private",
        "priority": 50,
    }
    return CacheRule.objects.create(**(values | changes))


async def arule(**changes: Any) -> CacheRule:
    return await sync_to_async(rule)(**changes)


def vector_of(text: str) -> list[float]:
    """A unit vector that only this text has; two texts are nearly orthogonal."""
    seed = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    numbers = [
        byte - 127.5
        for index in range(EMBEDDING_DIM // 32)
        for byte in hashlib.sha256(seed + bytes([index])).digest()
    ]
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]


async def all_apart(texts: list[str]) -> list[Sequence[float]]:
    """Nothing is like anything else."""
    return [vector_of(text) for text in texts]


async def all_alike(texts: list[str]) -> list[Sequence[float]]:
    """Everything is alike (0.99 and more): the worst embedder, which leaves everything to the other checks."""
    base = vector_of("everything")
    return [[0.998 * a + 0.04 * b for a, b in zip(base, vector_of(text), strict=True)] for text in texts]


async def broken(texts: list[str]) -> list[Sequence[float]]:
    raise ConnectionError("the embedding lane is gone")


async def ask(text: str, embed: Embed = all_apart, **changes: Any) -> Decision:
    return await lookup(question(text, **changes), embed)


async def store(text: str, answer: str, embed: Embed = all_apart, **changes: Any) -> int | None:
    """Ask and remember the answer, as the flow does on a miss."""
    asked = question(text, **changes)
    return await remember(await lookup(asked, embed), asked, Answer(answer, is_complete=True))


def row(scope: str, key: str, of: CacheRule, **changes: Any) -> CacheEntry:
    """An entry written past the door."""
    now = changes.pop("created_at", timezone.now())
    values: dict[str, Any] = {
        "scope": scope, "prompt_sha256": key, "question": "q", "answer": "a", "rule": of, "sharing": of.sharing,
        "tenant": "default", "owner": "user:1", "model_revision": "small@1", "embedder": "test-embedder",
        "created_at": now, "expires_at": now + timedelta(seconds=of.ttl_s),
    }  # fmt: skip
    return CacheEntry.objects.create(**(values | changes))
