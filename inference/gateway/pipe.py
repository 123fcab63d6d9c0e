"""The gateway core's end of the pipe to the front, for an event loop.

Knows frames and back-pressure; does not know what commands mean. A closed pipe is the order to end.
"""

from __future__ import annotations

import asyncio
import socket

import msgspec

from inference.core.messages import FRAME_HEADER, MAX_FRAME_BYTES, Command, FromCore, pack, unpack_inbox
from inference.core.pipe import PipeClosed


class AsyncFrontPipe:
    """Commands in, packs out, over a connected stream socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, connection: socket.socket) -> AsyncFrontPipe:
        return cls(*await asyncio.open_unix_connection(sock=connection))

    async def send(self, message: FromCore) -> None:
        """Returns when the front can take more."""
        try:
            self._writer.write(pack(message))
            await self._writer.drain()
        except ConnectionError as error:
            raise PipeClosed(str(error)) from error

    async def receive(self) -> list[Command]:
        """The commands of the next frame."""
        try:
            (size,) = FRAME_HEADER.unpack(await self._reader.readexactly(FRAME_HEADER.size))
            if size > MAX_FRAME_BYTES:
                raise PipeClosed(f"a frame of {size} bytes is corruption")
            return unpack_inbox(await self._reader.readexactly(size)).commands
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError) as error:
            raise PipeClosed(f"the front closed the pipe: {error}") from error

    def close(self) -> None:
        self._writer.close()
