"""An event loop in a thread of its own: work from any thread, its result there.

Knows threads, the end of them, and that a fork takes none along. Does not know what the work is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from inference.errors import EngineUnavailable

Result = TypeVar("Result")


class LoopThread:
    """Runs from the start. `at_end` is the last thing that is done on the loop; then everybody who waits is let go."""

    def __init__(self, name: str, at_end: Callable[[], Awaitable[None]]) -> None:
        self._at_end = at_end
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._wants_end = asyncio.Event()
        # Between "is it open?" and what is put on the loop then. A garbage collection may come back in there.
        self._lock = threading.RLock()
        self._is_closing = False
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        """A thread is of the process that started it: in a child that was forked it is closed."""
        return self._is_closing or not self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`; whoever stops waiting for it stops it. Raises EngineUnavailable when closed."""
        try:
            with self._open():
                future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except EngineUnavailable:
            work.close()
            raise
        try:
            return future.result()
        except CancelledError:  # nobody else ends what somebody waits for
            raise closed() from None
        except BaseException:
            future.cancel()
            raise

    def post(self, call: Callable[[], None]) -> None:
        """Has `call` done soon; when closed there is nothing left to do it for."""
        with suppress(EngineUnavailable), self._open():
            self._loop.call_soon_threadsafe(call)

    def close(self) -> None:
        """Returns when the thread has ended. May be called again, by several at once, and by the thread itself (a
        garbage collection there), which cannot wait for its own end."""
        if self._thread.is_alive():
            with self._lock:
                if not self._is_closing:
                    self._is_closing = True
                    self._loop.call_soon_threadsafe(self._wants_end.set)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Inside, the loop takes what it is given. Raises EngineUnavailable when closed."""
        if self.is_closed:  # before the lock: in a forked child nobody may be left to unlock it
            raise closed()
        with self._lock:
            if self.is_closed:
                raise closed()
            yield

    def _live(self) -> None:
        with self._runner:  # its end cancels every task that is left
            self._runner.run(self._until_the_end())

    async def _until_the_end(self) -> None:
        await self._wants_end.wait()
        await self._at_end()


def closed() -> EngineUnavailable:
    return EngineUnavailable("this LLM is closed, or was made by another process")
