"""Is it ready? One short question per kind of server, asked over its own socket.

Every probe answers False where it cannot connect, gets no answer in time or gets a wrong one. Knows protocols,
not processes.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Coroutine
from pathlib import Path

Opening = Coroutine[None, None, tuple[asyncio.StreamReader, asyncio.StreamWriter]]

ANSWER_WITHIN_S = 3.0
POSTGRES_PROTOCOL_3 = 196_608
ENGINE_SERVING = 1


async def postgres_accepts(socket: Path, user: str, database: str) -> bool:
    """True when the server lets `user` into `database` (a starting or recovering server refuses)."""
    settings = b"".join(text.encode() + b"\0" for text in ("user", user, "database", database)) + b"\0"
    startup = struct.pack("!ii", 8 + len(settings), POSTGRES_PROTOCOL_3) + settings
    return await _unix_answer(socket, startup, num_bytes=1) == b"R"


async def valkey_answers(socket: Path) -> bool:
    """True when the server answers a PING (one that still loads its data answers with an error)."""
    return await _unix_answer(socket, b"PING\r\n", num_bytes=5) == b"+PONG"


async def web_answers(port: int, path: str) -> bool:
    """True when GET `path` on the loopback port answers 200."""
    request = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: launcher\r\n\r\n".encode()
    opening = asyncio.open_connection("127.0.0.1", port)
    return b" 200 " in await _answer(opening, request, num_bytes=13)


async def engine_serves(address: str) -> bool:
    """True when the gRPC health service at `address` says SERVING."""
    return await _engine_health(address) == ENGINE_SERVING


async def engine_answers(address: str) -> bool:
    """True when the health service answers anything, even that the engine cannot serve now."""
    return await _engine_health(address) is not None


async def _engine_health(address: str) -> int | None:
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    async with grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=ANSWER_WITHIN_S)
        except grpc.RpcError:
            return None
    return int(answer.status)


async def _unix_answer(socket: Path, request: bytes, num_bytes: int) -> bytes:
    return await _answer(asyncio.open_unix_connection(socket), request, num_bytes)


async def _answer(opening: Opening, request: bytes, num_bytes: int) -> bytes:
    """The first `num_bytes` of the answer to `request`; fewer where the server fails or is slow."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            reader, writer = await opening
            try:
                writer.write(request)
                return bytes(await reader.readexactly(num_bytes))
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return b""
