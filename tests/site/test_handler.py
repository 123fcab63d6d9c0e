"""A request's synchronous work has one thread of its own, and the next request has it again."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings

from chatsite.handler import KEPT_THREADS, LoopHandler
from chatsite.loop_middleware import ON_LOOP

SCOPE = {"type": "http"}


class Asking(LoopHandler):
    """Notes the threads on which each request works, twice each, with all that are there at a time."""

    def __init__(self, num_at_a_time: int = 1) -> None:
        super().__init__()
        self.threads: list[tuple[threading.Thread, threading.Thread]] = []
        self._all_here = asyncio.Barrier(num_at_a_time)

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        first = await sync_to_async(threading.current_thread)()
        await self._all_here.wait()
        self.threads.append((first, await sync_to_async(threading.current_thread)()))


async def test_one_thread_serves_a_request_and_then_the_next() -> None:
    handler = Asking()
    for _ in range(3):
        await handler(SCOPE, None, None)
    assert len({thread for pair in handler.threads for thread in pair}) == 1


async def test_requests_at_a_time_have_a_thread_each() -> None:
    handler = Asking(num_at_a_time=5)
    await asyncio.gather(*(handler(SCOPE, None, None) for _ in range(5)))
    assert all(first is second for first, second in handler.threads)
    assert len({first for first, _ in handler.threads}) == 5


async def test_a_request_that_breaks_gives_its_thread_back() -> None:
    class Breaking(Asking):
        async def handle(self, scope: Any, receive: Any, send: Any) -> None:
            await super().handle(scope, receive, send)
            raise ValueError

    handler = Breaking()
    for _ in range(2):
        with pytest.raises(ValueError):
            await handler(SCOPE, None, None)
    assert len({first for first, _ in handler.threads}) == 1


async def test_after_a_burst_so_many_threads_are_kept_and_no_more() -> None:
    burst = KEPT_THREADS + 3
    handler = Asking(num_at_a_time=burst)
    await asyncio.gather(*(handler(SCOPE, None, None) for _ in range(burst)))
    threads = [first for first, _ in handler.threads]
    while sum(thread.is_alive() for thread in threads) > KEPT_THREADS:
        await asyncio.sleep(0.01)
    assert sum(thread.is_alive() for thread in threads) == KEPT_THREADS


def test_the_settings_keep_the_names_that_deployment_checks_look_for() -> None:
    LoopHandler()
    assert not set(settings.MIDDLEWARE) & set(ON_LOOP.values())
    assert "django.middleware.csrf.CsrfViewMiddleware" in settings.MIDDLEWARE
