"""Database work of coroutines: short synchronous functions on a bounded set of threads.

The set is as large as the connection pool, so that a hung query costs one thread and no socket. Knows no query.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections

P = ParamSpec("P")
R = TypeVar("R")

EXECUTOR = ThreadPoolExecutor(max_workers=settings.CONFIG.db_threads, thread_name_prefix="db")


async def run_in_db(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """`fn(*args, **kwargs)` on a database thread; its connection is back in the pool when it returns."""

    def with_connection() -> R:
        try:
            return fn(*args, **kwargs)
        finally:
            for connection in connections.all(initialized_only=True):
                connection.close()

    return await sync_to_async(with_connection, thread_sensitive=False, executor=EXECUTOR)()
