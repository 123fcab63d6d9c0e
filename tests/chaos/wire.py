"""A WebSocket client on plain streams, so that a test may also misbehave: not read, not answer, vanish.

Knows the handshake and the frames of RFC 6455 as far as our server uses them; knows nothing of the chat.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import struct
from contextlib import suppress

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Closed(Exception):
    """The server closed the socket. `code` is 1006 when it just vanished."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Refused(Exception):
    """The handshake was refused with an HTTP status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Wire:
    """One open socket. Use `Wire.open`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(
        cls, port: int, path: str, headers: dict[str, str], receive_buffer: int | None = None
    ) -> Wire:
        """Raises Refused, or ConnectionError when nobody listens. `receive_buffer`: bytes the kernel takes for us."""
        connection = socket.socket()
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
        except OSError:
            connection.close()
            raise
        reader, writer = await asyncio.open_connection(sock=connection)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13",
            *(f"{name}: {value}" for name, value in headers.items()), "", "",
        ]  # fmt: skip
        writer.write("\r\n".join(lines).encode())
        wire = cls(reader, writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if (status := int(head.split(b" ", 2)[1])) != 101:
                raise Refused(status)
        except asyncio.IncompleteReadError:
            wire.vanish()
            raise ConnectionResetError("the handshake was cut off") from None
        except BaseException:  # a tab may be closed in mid-handshake
            wire.vanish()
            raise
        return wire

    async def send(self, text: str) -> None:
        await self._frame(TEXT, text.encode())

    def send_raw(self, raw: bytes) -> None:
        """Bytes that need not be a frame."""
        self._writer.write(raw)

    async def receive(self) -> str:
        """The next text; answers pings. Raises Closed."""
        message = b""
        while True:
            is_final, opcode, payload = await self._read_frame()
            if opcode == PING:
                await self._frame(PONG, payload)
            elif opcode == CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else 1005
                await self._frame(CLOSE, payload[:2])
                self.vanish()
                raise Closed(code)
            elif opcode in (TEXT, BINARY, 0):
                message += payload
                if is_final:
                    return message.decode()

    async def close(self) -> None:
        """Leaves in order."""
        with suppress(ConnectionError):  # the server was faster
            await self._frame(CLOSE, struct.pack("!H", 1000))
        self._writer.close()

    def vanish(self) -> None:
        """Cuts the connection without a word."""
        self._writer.transport.abort()

    async def _read_frame(self) -> tuple[bool, int, bytes]:
        try:
            first, second = await self._reader.readexactly(2)
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack("!H", await self._reader.readexactly(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", await self._reader.readexactly(8))
            return bool(first & 0x80), first & 0x0F, await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.vanish()
            raise Closed(1006) from None

    async def _frame(self, opcode: int, payload: bytes) -> None:
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | length)
        elif length < 2**16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, length)
        # A zero mask is a mask too, and leaves the payload readable.
        self._writer.write(head + b"\0\0\0\0" + payload)
        await self._writer.drain()
