"""Every test of the cache starts with a process that has seen nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from semcache import service
from semcache.breaker import Breaker
from semcache.rulebook import RuleBook
from semcache.usage import HitCounter


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch, settings) -> Iterator[None]:
    settings.SEMCACHE_BUDGET_MS = 10_000  # a busy test machine must not turn hits into timeouts
    monkeypatch.setattr(service, "rules", RuleBook())
    monkeypatch.setattr(service, "hits", HitCounter())
    monkeypatch.setattr(service, "store_breaker", Breaker())
    monkeypatch.setattr(service, "embedder_breaker", Breaker())
    yield


@pytest.fixture(autouse=True)
async def connections_given_back() -> AsyncIterator[None]:
    """Asynchronous ORM calls of a test leave their connection on a thread that would outlive the test database."""
    yield
    await sync_to_async(connections.close_all)()
