"""The open sockets of this process, so that stopping can be said to all of them."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Socket(Protocol):
    async def drain(self) -> None: ...
    async def end(self) -> None: ...


sockets: set[Socket] = set()


async def say_draining(within_s: float) -> None:
    """Tells all pages; those that read nothing are not waited for."""
    words = [asyncio.ensure_future(socket.drain()) for socket in list(sockets)]
    if words:
        await asyncio.wait(words, timeout=within_s)


async def end_all(within_s: float) -> None:
    """Closes all sockets; returns when they are gone, or after `within_s`."""
    ends = [asyncio.ensure_future(socket.end()) for socket in list(sockets)]
    if ends:
        await asyncio.wait(ends, timeout=within_s)
