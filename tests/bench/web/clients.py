"""Clients that cost next to nothing: they keep what they read and when, and take it apart when all is over.

A client library would be slower than the server that is measured. Knows the two wire forms as far as the bench needs
them; checks that every answer came to its end.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from tests.bench.web.lags import Answer, Arrival

READ_BYTES = 1 << 16
TEXT, PING, PONG = 0x1, 0x9, 0xA
ENDS_WITHIN_S = 120.0


class AnswerBroken(Exception):
    """A stream that did not end as a complete answer does."""


@dataclass(frozen=True, slots=True)
class Door:
    """Where the site is, and as whom to knock."""

    url: str
    key: str = ""
    cookies: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self.url)
        return await asyncio.open_connection(parts.hostname, parts.port)


@dataclass(frozen=True, slots=True)
class Read:
    """Bytes of one stream in order, each with the time when they came."""

    at_s: float
    raw: bytes


class Api:
    """Chat completions, each streamed over a connection of its own."""

    def __init__(self, door: Door) -> None:
        self._door = door

    @classmethod
    async def opened(cls, door: Door) -> Api:
        return cls(door)

    async def answer(self, question: str) -> Answer:
        return await _completion(self._door, question)

    def close(self) -> None:
        pass


async def _completion(door: Door, question: str) -> Answer:
    reader, writer = await door.connect()
    body = json.dumps(
        {
            "model": "scripted",
            "stream": True,
            "messages": [{"role": "user", "content": question}],
            "cache": {"no-cache": True, "no-store": True},
        }
    ).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {door.host}\r\nAuthorization: Bearer {door.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    reads = await _all(reader)
    writer.close()
    if b"data: [DONE]" not in reads[-1].raw + reads[-min(2, len(reads))].raw:
        raise AnswerBroken(b"".join(read.raw for read in reads)[:600].decode(errors="replace"))
    chunks = list(_chunks(reads))
    texts = ((at_s, choice["delta"].get("content")) for at_s, chunk in chunks for choice in chunk["choices"])
    generation = UUID(chunks[0][1]["id"].removeprefix("chatcmpl-"))
    return Answer(generation, [Arrival(at_s, text) for at_s, text in texts if text])


class Socket:
    """A chat socket that was welcomed. Made by `opened`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._held = bytearray()

    @classmethod
    async def opened(cls, door: Door) -> Socket:
        reader, writer = await door.connect()
        handshake = (
            f"GET /ws/chat HTTP/1.1\r\nHost: {door.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n"
            f"Origin: {door.url}\r\nCookie: {door.cookies}\r\n\r\n"
        )
        writer.write(handshake.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in answer.partition(b"\r\n")[0]:
            raise AnswerBroken(answer.decode(errors="replace"))
        socket = cls(reader, writer)
        socket.say({"type": "hello", "protocol": 1})
        async for _, payload in socket.texts():
            if b'"type":"welcome"' in payload:
                break
        return socket

    def say(self, value: dict[str, object]) -> None:
        self._send(TEXT, json.dumps(value).encode())

    async def texts(self) -> AsyncIterator[tuple[float, bytes]]:
        """Texts with the time when they came, until the server closes. Pings are answered, as it wants."""
        at_s = time.monotonic()
        while True:
            for kind, payload in _taken(self._held):
                if kind == PING:
                    self._send(PONG, payload)
                elif kind == TEXT:
                    yield at_s, payload
            raw = await self._reader.read(READ_BYTES)
            if not raw:
                return
            at_s = time.monotonic()
            self._held += raw

    async def stay(self) -> None:
        """Until the server closes, or cancelled."""
        async for _ in self.texts():
            pass

    def close(self) -> None:
        self._writer.close()

    def _send(self, kind: int, payload: bytes) -> None:
        """A masked frame; the mask is zero, which is allowed and costs nothing."""
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2, "big")
        self._writer.write(bytes([0x80 | kind]) + length + bytes(4) + payload)

    async def answer(self, question: str) -> Answer:
        """One question in a conversation of its own."""
        self.say({"type": "send", "client_message_id": str(uuid4()), "text": question, "temporary": True})
        heard = []
        async with asyncio.timeout(ENDS_WITHIN_S):
            async for at_s, payload in self.texts():
                heard.append((at_s, payload))
                if b'"type":"done"' in payload:
                    break
        frames = [json.loads(payload) | {"at_s": at_s} for at_s, payload in heard]
        if not frames or frames[-1]["type"] != "done" or frames[-1]["state"] != "complete":
            raise AnswerBroken(str(frames[-1:])[:600])
        deltas = [frame for frame in frames if frame["type"] == "delta"]
        generation = UUID(frames[-1]["generation"])
        return Answer(generation, [Arrival(frame["at_s"], frame["text"]) for frame in deltas])


async def _all(reader: asyncio.StreamReader) -> list[Read]:
    """Everything up to the end of the response."""
    reads: list[Read] = []
    async with asyncio.timeout(ENDS_WITHIN_S):
        while raw := await reader.read(READ_BYTES):
            reads.append(Read(time.monotonic(), raw))
    return reads


def _chunks(reads: list[Read]) -> Iterator[tuple[float, dict[str, Any]]]:
    """With the time of the read that ended their line."""
    held = b""
    for read in reads:
        *lines, held = (held + read.raw).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                yield read.at_s, json.loads(line[len(b"data: ") :])


def _taken(held: bytearray) -> Iterator[tuple[int, bytes]]:
    """The whole frames at the beginning of `held` (RFC 6455, 5.2; a server masks none), which loses them."""
    while len(held) >= 2:
        size, start = held[1] & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            size = int.from_bytes(held[2:start], "big")
        if len(held) < start + size:
            return
        kind, payload = held[0] & 0x0F, bytes(held[start : start + size])
        del held[: start + size]
        yield kind, payload
