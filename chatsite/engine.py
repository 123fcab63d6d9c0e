"""The way to the engine: one client per event loop, and what the engine says of itself.

A gRPC channel belongs to the loop that made it; a worker has its loop in `chatsite.loop`, made after the fork.
Knows addresses and caching; what is asked of the engine is its callers' business.
"""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakKeyDictionary

from django.conf import settings

from inference.client import EngineClient
from inference.errors import EngineError
from inference.types import EngineInfo

logger = logging.getLogger(__name__)

INFO_FRESH_S = 5.0
FIRST_INFO_WITHIN_S = 2.0

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, EngineClient] = WeakKeyDictionary()


class _InfoCache:
    """The last thing an engine said of itself; it stays true enough to show history and hits while it is down.

    Only the first answer is waited for: later ones come in the background, so a hung engine delays nobody.
    """

    def __init__(self) -> None:
        self._info: EngineInfo | None = None
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def get(self) -> EngineInfo | None:
        now = asyncio.get_running_loop().time()
        is_asking = self._asking is not None and not self._asking.done()
        if not is_asking and (self._info is None or now - self._asked_at > INFO_FRESH_S):
            self._asked_at = now
            self._asking = asyncio.create_task(self._ask())
        if self._info is None and self._asking is not None:
            await asyncio.wait({self._asking}, timeout=FIRST_INFO_WITHIN_S)
        return self._info

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self) -> None:
        try:
            self._info = await engine().info()
        except EngineError as error:
            logger.warning("the engine does not say what it serves: %s", error.message)


_infos: WeakKeyDictionary[asyncio.AbstractEventLoop, _InfoCache] = WeakKeyDictionary()


def engine() -> EngineClient:
    """The client of the running loop; it connects at its first call."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        config = settings.CONFIG
        _clients[loop] = EngineClient(
            config.engine_address,
            config.engine_token,
            config.engine_tls_cert,
            call_timeout_s=config.engine_call_timeout_s,
        )
    return _clients[loop]


async def engine_info() -> EngineInfo | None:
    """What the engine serves, at most INFO_FRESH_S old while it answers; None when it never did."""
    return await _infos.setdefault(asyncio.get_running_loop(), _InfoCache()).get()


async def close_engine() -> None:
    """Closes the running loop's client, if there is one."""
    info = _infos.pop(asyncio.get_running_loop(), None)
    if info is not None:
        await info.close()
    client = _clients.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.close()
