"""Threads without threads: jobs run at once, or when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class Inline(Executor):
    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


class Held(Executor):
    """A slow disk: nothing happens before `run_all`."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.jobs.append((future, function, args))
        return future

    def run_all(self) -> None:
        while self.jobs:
            future, function, args = self.jobs.pop(0)
            if future.set_running_or_notify_cancel():
                future.set_result(function(*args))
