"""One event loop for the coroutines of a synchronous process: celery tasks run them here, whatever thread they are on.

gRPC's asyncio side serves several loops badly: an event that comes for a loop already closed stalls the others. So a
worker has one loop that lives as long as it does, made at first use and so after the fork. Knows no task.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, run on this process's loop. Not for threads that run a loop themselves."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


def _loop() -> asyncio.AbstractEventLoop:
    pid = os.getpid()
    with _lock:
        if pid not in _loops:
            _loops[pid] = asyncio.new_event_loop()
            threading.Thread(target=_loops[pid].run_forever, name="coroutines", daemon=True).start()
        return _loops[pid]
