"""Readiness: the right answer in time, nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from chatsite.launcher import probes


@asynccontextmanager
async def answering(socket: Path, answer: bytes | None) -> AsyncIterator[None]:
    """A server that gives every question the same answer; with None it never says anything."""

    is_served = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if answer is not None:
            writer.write(answer)
            await writer.drain()
        else:
            await reader.read()
        writer.close()
        await writer.wait_closed()
        is_served.set()

    socket.parent.mkdir()
    async with await asyncio.start_unix_server(serve, socket):
        yield
        await is_served.wait()


@pytest.mark.parametrize(
    ("answer", "is_ready"), [(b"+PONG\r\n", True), (b"-LOADING\r\n", False), (b"+P", False)]
)
async def test_valkey_is_ready_when_it_pongs(socket_dir: Path, answer: bytes, is_ready: bool) -> None:
    async with answering(socket_dir / "s", answer):
        assert await probes.valkey_answers(socket_dir / "s") is is_ready


@pytest.mark.parametrize(
    ("answer", "is_ready"), [(b"R\0\0\0\x08", True), (b"E\0\0\0\x08", False), (b"", False)]
)
async def test_postgres_is_ready_when_it_lets_the_user_in(
    socket_dir: Path, answer: bytes, is_ready: bool
) -> None:
    async with answering(socket_dir / "s", answer):
        assert await probes.postgres_accepts(socket_dir / "s", "user", "database") is is_ready


async def test_a_server_that_never_answers_is_not_ready(
    socket_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "ANSWER_WITHIN_S", 0.05)
    async with answering(socket_dir / "s", None):
        assert not await probes.valkey_answers(socket_dir / "s")


async def test_no_server_is_not_ready(socket_dir: Path) -> None:
    assert not await probes.valkey_answers(socket_dir / "nobody")
    assert not await probes.web_answers(1, "/health/ready")


@pytest.mark.parametrize(("status", "is_ready"), [(b"200 OK", True), (b"503 Service Unavailable", False)])
async def test_web_is_ready_when_it_answers_200(status: bytes, is_ready: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 " + status + b"\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await probes.web_answers(port, "/health/ready") is is_ready


@pytest.mark.parametrize(("status", "serves"), [("SERVING", True), ("NOT_SERVING", False)])
async def test_engine_health_tells_serving_from_answering(
    socket_dir: Path, status: str, serves: bool
) -> None:
    socket_dir.mkdir()
    address = f"unix:{socket_dir}/engine.sock"
    server = grpc.aio.server()
    servicer = health.aio.HealthServicer()
    await servicer.set("", health_pb2.HealthCheckResponse.ServingStatus.Value(status))
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(address)
    await server.start()
    try:
        assert await probes.engine_serves(address) is serves
        assert await probes.engine_answers(address)
    finally:
        await server.stop(None)
    assert not await probes.engine_answers(address)
