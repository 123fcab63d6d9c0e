"""The open sockets of this process, so that stopping can be said to all of them."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Socket(Protocol):
    async def drain(self) -> None: ...
    async def end(self) -> None: ...


sockets: set[Socket] = set()


async def say_draining() -> None:
    await asyncio.gather(*(socket.drain() for socket in list(sockets)), return_exceptions=True)


async def end_all() -> None:
    await asyncio.gather(*(socket.end() for socket in list(sockets)), return_exceptions=True)
