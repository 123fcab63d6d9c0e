"""Where the cache's database work runs: on bounded threads, each piece short, its connection given back at once.

The process may hand in its own executor, so that all database work of a process shares one bound.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connection

P = ParamSpec("P")
T = TypeVar("T")
OWN_THREADS = 4

_executor = ThreadPoolExecutor(OWN_THREADS, thread_name_prefix="semcache")


def set_executor(executor: ThreadPoolExecutor) -> None:
    """Use the caller's threads from now on instead of the cache's own."""
    global _executor  # noqa: PLW0603 - one per process, set once when the process starts
    _executor = executor


async def in_database(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run one short piece of synchronous database work."""

    def run() -> T:
        try:
            return work(*args, **kwargs)
        finally:
            connection.close()

    return await sync_to_async(run, thread_sensitive=False, executor=_executor)()
