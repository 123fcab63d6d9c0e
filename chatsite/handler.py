"""Django's handler for a process that streams: the loop waits for no thread to begin or to end.

As it comes, Django's middleware hands its halves to a thread, and each request gets a thread of its own, whose start
and end the loop waits for while all streams stand. Here middleware that looks at headers stays on the loop, and threads
are kept for the next request. Knows no view.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler

from chatsite.loop_middleware import ON_LOOP

if TYPE_CHECKING:
    from collections.abc import Iterator

# As many as requests begin and end at a time; a burst's other threads end with it.
KEPT_THREADS = 32


class LoopHandler(ASGIHandler):
    """One synchronous thread at a time for each request, as Django promises, and the same ones again and again."""

    def __init__(self) -> None:
        self._idle: list[ThreadPoolExecutor] = []
        super().__init__()

    def load_middleware(self, is_async: bool = False) -> None:
        # Settings have Django's own names, which its deployment checks look for.
        named = settings.MIDDLEWARE
        settings.MIDDLEWARE = [ON_LOOP.get(name, name) for name in named]
        try:
            super().load_middleware(is_async)
        finally:
            settings.MIDDLEWARE = named

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        with self._thread() as thread:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle(scope, receive, send)

    @contextmanager
    def _thread(self) -> Iterator[ThreadPoolExecutor]:
        thread = self._idle.pop() if self._idle else ThreadPoolExecutor(1, thread_name_prefix="request")
        try:
            yield thread
        finally:
            if len(self._idle) < KEPT_THREADS:
                self._idle.append(thread)
            else:
                thread.shutdown(wait=False)
