"""As much of an HTTP/1.1 server as the fake upstream needs, over asyncio streams.

Knows requests with a length, answers with a body, and server-sent events that end when the client goes away. Nothing
here is hardened: it serves tests on the loopback address.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

MAX_HEADER_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Header names are lower-case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """`events` instead of `body`: each is one `data:` line. Its generator is closed when the client hangs up, and
    may raise ConnectionResetError to cut the connection itself."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    events: AsyncGenerator[str] | None = None


Handle = Callable[[HttpRequest], Awaitable[HttpAnswer]]


class HttpServer:
    """`url` is known after `start`."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.url = ""

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=MAX_HEADER_BYTES)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Closes the door and cuts every connection."""
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (request := await _read(reader)) is not None:
                answer = await self._handle(request)
                await _write(answer, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # hung up
        except asyncio.CancelledError:
            pass  # the server stops
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> HttpRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _version = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return HttpRequest(method, path, headers, body)


async def _write(answer: HttpAnswer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    is_stream = answer.events is not None
    fields = dict(answer.headers) | (
        {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        if is_stream
        else {"Content-Length": str(len(answer.body))}
    )
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    writer.write(f"HTTP/1.1 {answer.status} -\r\n{lines}\r\n".encode() + answer.body)
    await writer.drain()
    if answer.events is not None:
        await _write_events(answer.events, reader, writer)


async def _write_events(
    events: AsyncGenerator[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Until the events end or the client hangs up: it sends nothing meanwhile, so any news is the end."""
    sending = asyncio.create_task(_send(events, writer))
    hung_up = asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait({sending, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            raise ConnectionResetError("the client hung up")
        sending.result()
    finally:
        for task in (sending, hung_up):
            task.cancel()
        await asyncio.gather(sending, hung_up, return_exceptions=True)


async def _send(events: AsyncGenerator[str], writer: asyncio.StreamWriter) -> None:
    async with aclosing(events):
        async for event in events:
            data = f"data: {event}\n\n".encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
