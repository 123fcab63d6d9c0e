"""One engine: its client on the running loop, and what it last said of itself.

Knows freshness and whether it answers; which engines there are, and which one is asked what, `chatsite.engines` knows.
"""

from __future__ import annotations

import asyncio
import logging

from inference.client import EngineClient
from inference.errors import EngineError, EngineUnavailable
from inference.types import EngineInfo

logger = logging.getLogger(__name__)

INFO_FRESH_S = 5.0
# A queue that was so long at a request is taken for that long until then; later it may have gone.
QUEUE_FRESH_S = 5.0
# Longer than any engine that works takes to say what it serves.
SAYS_WITHIN_S = 2.0


class Engine:
    """What it said stays true enough to show history and hits while it is down; it is asked anew in the background, so
    a hung engine delays nobody."""

    def __init__(self, client: EngineClient) -> None:
        self.client = client
        self.info: EngineInfo | None = None
        self._has_failed = False
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        self._num_waiting, self._waited_at = 0, float("-inf")

    @property
    def address(self) -> str:
        return self.client.address

    @property
    def is_away(self) -> bool:
        """Whether it failed when it was last asked, or is taking too long now. One that was never asked is not."""
        is_slow = self._is_asking and asyncio.get_running_loop().time() - self._asked_at > SAYS_WITHIN_S
        return self._has_failed or is_slow

    @property
    def num_waiting(self) -> int:
        """Requests without a place in its batch, as it said at the last one from here; 0 when that is long ago."""
        is_fresh = asyncio.get_running_loop().time() - self._waited_at < QUEUE_FRESH_S
        return self._num_waiting if is_fresh else 0

    def take_queue(self, num_waiting: int) -> None:
        """It took a request, and so many wait there now."""
        self._num_waiting, self._waited_at = num_waiting, asyncio.get_running_loop().time()

    def note(self, error: EngineError) -> None:
        """What somebody else's call failed with: one that cannot be reached is away until it says what it serves."""
        self._has_failed = self._has_failed or isinstance(error, EngineUnavailable)

    def ask(self) -> asyncio.Task[None] | None:
        """Asks when what it said is old. The question that is under way while it never said anything, else None."""
        now = asyncio.get_running_loop().time()
        if not self._is_asking and (self.info is None or now - self._asked_at > INFO_FRESH_S):
            self._asked_at = now
            self._asking = asyncio.create_task(self._ask())
        return self._asking if self.info is None else None

    async def meet(self, name: str) -> None:
        """It answered under `name`: what it said under another one, before it was started again, is asked anew."""
        if self.info is None or self.info.engine == name:
            return
        if not self._is_asking:
            self._asked_at = asyncio.get_running_loop().time()
            self._asking = asyncio.create_task(self._ask())
        assert self._asking is not None
        await asyncio.wait({self._asking}, timeout=SAYS_WITHIN_S)

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
        await self.client.close()

    @property
    def _is_asking(self) -> bool:
        return self._asking is not None and not self._asking.done()

    async def _ask(self) -> None:
        try:
            self.info = await self.client.info()
        except EngineError as error:
            self._has_failed = True
            logger.warning("the engine at %s does not say what it serves: %s", self.address, error.message)
        else:
            self._has_failed = False
