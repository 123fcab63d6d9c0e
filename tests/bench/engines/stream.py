"""Server-sent events over HTTP/1.1 for next to nothing: what is read is kept with its time, and taken apart when all is
over. A client library would take its share of the cores that the engines are measured on.

Knows answers in chunks, as every server of the bench sends them. Does not know what events say.
"""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from urllib.parse import urlsplit

from tests.bench.engines.answers import AnswerBroken

READ_BYTES = 1 << 16
ENDS_WITHIN_S = 900.0
LAST_CHUNK = b"\r\n0\r\n\r\n"
DATA, DONE = b"data: ", b"[DONE]"


@dataclass(frozen=True, slots=True)
class Read:
    at_s: float
    raw: bytes


@dataclass(frozen=True, slots=True)
class Event:
    at_s: float
    fields: dict[str, Any]


async def post(url: str, body: Mapping[str, Any], key: str = "") -> list[Event]:
    """All events of the answer. Raises AnswerBroken for one that is no stream, or does not come."""
    parts = urlsplit(url)
    try:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            writer.write(_request(parts.netloc, parts.path, json.dumps(body).encode(), key))
            async with asyncio.timeout(ENDS_WITHIN_S):
                reads = await _read(reader)
        finally:
            writer.close()
    except OSError as error:  # a timeout is one
        raise AnswerBroken(f"{type(error).__name__} {error}") from error
    return list(events(reads))


def events(reads: Sequence[Read]) -> Iterator[Event]:
    """An event has the time of the read that brought the end of its chunk."""
    whole = b"".join(read.raw for read in reads)
    ends = list(accumulate(len(read.raw) for read in reads))
    head, _, _ = whole.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0] or b"chunked" not in head.lower():
        raise AnswerBroken(whole[:600].decode(errors="replace"))
    place, held = len(head) + 4, b""
    while size_end := whole.find(b"\r\n", place) + 1:
        start = size_end + 1
        end = start + int(whole[place : size_end - 1].partition(b";")[0], 16)
        if start == end:
            return
        at_s = reads[bisect_left(ends, min(end, len(whole)))].at_s
        *lines, held = (held + whole[start:end]).split(b"\n")
        yield from (
            Event(at_s, json.loads(line[len(DATA) :]))
            for line in lines
            if line.startswith(DATA) and not line.startswith(DATA + DONE)
        )
        place = end + 2
    raise AnswerBroken("the stream was cut off")


def _request(host: str, path: str, body: bytes, key: str) -> bytes:
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\n{authorization}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def _read(reader: asyncio.StreamReader) -> list[Read]:
    """Up to the last chunk, or to the end of the connection."""
    reads: list[Read] = []
    tail = b""
    while not tail.endswith(LAST_CHUNK) and (raw := await reader.read(READ_BYTES)):
        reads.append(Read(time.monotonic(), raw))
        tail = (tail + raw)[-len(LAST_CHUNK) :]
        if len(reads) == 1 and b"chunked" not in raw.lower():
            break  # a refusal: its beginning is enough
    return reads
