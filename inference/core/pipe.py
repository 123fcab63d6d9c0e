"""The core's end of the pipe to the front.

Knows frames and blocking; does not know what commands mean. A closed pipe is the order to end.
"""

from __future__ import annotations

import select
import socket

from inference.core.messages import FRAME_HEADER, MAX_FRAME_BYTES, Command, FromCore, pack, unpack_inbox

READ_BYTES = 1 << 20


class PipeClosed(Exception):
    """The front is gone, or what it sends is no longer a message."""


class FrontPipe:
    """Commands in, packs out, over a connected stream socket."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        self._connection = connection
        self._unread = bytearray()

    def send(self, message: FromCore) -> None:
        try:
            self._connection.sendall(pack(message))
        except OSError as error:
            raise PipeClosed(str(error)) from error

    def receive(self, timeout_s: float | None) -> list[Command]:
        """Every whole command that has arrived; waits up to `timeout_s` for news (0: not at all, None: for ever)."""
        if self._wait(timeout_s):
            self._read()
        while self._wait(0):
            self._read()
        return self._parse()

    def _wait(self, timeout_s: float | None) -> bool:
        return bool(select.select([self._connection], [], [], timeout_s)[0])

    def _read(self) -> None:
        try:
            received = self._connection.recv(READ_BYTES)
        except OSError as error:
            raise PipeClosed(str(error)) from error
        if not received:
            raise PipeClosed("the front closed the pipe")
        self._unread += received

    def _parse(self) -> list[Command]:
        commands: list[Command] = []
        while len(self._unread) >= FRAME_HEADER.size:
            (size,) = FRAME_HEADER.unpack_from(self._unread)
            if size > MAX_FRAME_BYTES:
                raise PipeClosed(f"a frame of {size} bytes is corruption")
            end = FRAME_HEADER.size + size
            if len(self._unread) < end:
                break
            commands += unpack_inbox(bytes(self._unread[FRAME_HEADER.size : end])).commands
            del self._unread[:end]
        return commands
