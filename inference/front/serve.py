"""Runs a front until it is told to stop: open the door, start the core, serve, end streams, stop the core.

Knows the order of starting and stopping and the exit codes. Used by `python -m inference` and the scripted engine.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable

import grpc
from grpc_health.v1 import health_pb2_grpc

from inference.client import MAX_MESSAGE_BYTES
from inference.front.core_process import EXIT_CONFIG
from inference.front.door import DoorError, open_door
from inference.front.engine import Engine
from inference.front.readiness import Readiness
from inference.front.server import EngineService, HealthService, TokenCheck
from inference.proto.engine_pb2_grpc import add_EngineServicer_to_server

logger = logging.getLogger(__name__)

DRAIN_S = 2.0


async def serve(engine: Engine, *, say: Callable[[str], None]) -> int:
    """The exit code. SIGTERM and SIGINT end it in order."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    service = EngineService(engine)
    server = build_server(engine, service)
    try:
        open_door(server, engine.config)
        stop_metrics = _serve_metrics(engine)
    except DoorError as error:
        say(f"error: {error}")
        return EXIT_CONFIG
    engine.start()
    await server.start()
    say(f"listening on {engine.config.address}")
    ready = asyncio.create_task(_say_when_ready(engine.readiness, say))
    await _first_of(stop, engine.core.gave_up)
    say("stopping")
    ready.cancel()
    await engine.stop()
    service.end_sessions()
    await server.stop(DRAIN_S)
    await asyncio.to_thread(stop_metrics)
    return EXIT_CONFIG if engine.core.gave_up.is_set() else 0


def build_server(engine: Engine, service: EngineService) -> grpc.aio.Server:
    token = engine.config.token
    server = grpc.aio.server(
        interceptors=[TokenCheck(token)] if token else [],
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),
            # Clients ask every ten seconds whether this process is alive. By default a third question within five
            # minutes without data closes the connection, and with it the streams of answers that wait.
            ("grpc.http2.max_ping_strikes", 0),
        ],
    )
    add_EngineServicer_to_server(service, server)
    health_pb2_grpc.add_HealthServicer_to_server(HealthService(engine), server)
    return server


def _serve_metrics(engine: Engine) -> Callable[[], None]:
    port = engine.config.metrics_port
    if not port:
        return lambda: None
    from inference.metrics import serve_metrics  # not needed, and not loaded, by default

    try:
        return serve_metrics(engine.stats, port)
    except OSError as error:
        raise DoorError(f"ENGINE_METRICS_PORT={port} cannot be opened: {error}") from error


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _say_when_ready(readiness: Readiness, say: Callable[[str], None]) -> None:
    await readiness.first_token.wait()
    say("ready")
