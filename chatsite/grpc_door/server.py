"""Opens and closes the gRPC door: address, TLS, health and reflection, and an end that cuts no answer short.

Off while `CHAT_GRPC_ADDRESS` is empty. It lives in the web process and on its loop, where the answers are made. Knows
sockets and certificates; `service` knows the calls.
"""

from __future__ import annotations

from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from chatsite.env import WebConfig
from chatsite.grpc_door.chat_pb2 import DESCRIPTOR
from chatsite.grpc_door.chat_pb2_grpc import add_ChatServicer_to_server
from chatsite.grpc_door.service import ChatService

SERVICE = DESCRIPTOR.services_by_name["Chat"].full_name
MAX_STREAMS_PER_CONNECTION = 100
KEEPALIVE_MS = 30_000
# Clients may ping an idle stream so often; the default of five minutes ends those that do.
LEAST_PING_MS = 10_000


class DoorUnusable(Exception):
    """The address cannot be served; the text says what to change."""


class GrpcDoor:
    """An open door. Made by `opened`."""

    def __init__(self, server: grpc.aio.Server, health_of: health.aio.HealthServicer, port: int) -> None:
        self._server = server
        self._health = health_of
        self.port = port

    async def say_draining(self) -> None:
        """Load balancers send nobody any more; what is being answered goes on."""
        await self._health.enter_graceful_shutdown()

    async def close(self, within_s: float) -> None:
        await self._server.stop(within_s)


async def opened(config: WebConfig) -> GrpcDoor | None:
    """The open door; None where none is configured. Raises DoorUnusable."""
    if not config.grpc_address:
        return None
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", config.max_body_bytes),
            ("grpc.max_concurrent_streams", MAX_STREAMS_PER_CONNECTION),
            ("grpc.keepalive_time_ms", KEEPALIVE_MS),
            ("grpc.http2.min_ping_interval_without_data_ms", LEAST_PING_MS),
            ("grpc.so_reuseport", 0),  # a taken port is an error, not a share of the calls
        ]
    )
    add_ChatServicer_to_server(ChatService(), server)
    health_of = health.aio.HealthServicer()
    for name in ("", SERVICE):
        await health_of.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(health_of, server)
    reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    try:
        port = _bind(server, config)
    except (RuntimeError, OSError) as error:
        raise DoorUnusable(f"CHAT_GRPC_ADDRESS={config.grpc_address} cannot be opened: {error}") from error
    await server.start()
    return GrpcDoor(server, health_of, port)


def _bind(server: grpc.aio.Server, config: WebConfig) -> int:
    if not config.tls_cert:
        return int(server.add_insecure_port(config.grpc_address))  # the checks let loopback pass only
    pair = Path(config.tls_key).read_bytes(), Path(config.tls_cert).read_bytes()
    return int(server.add_secure_port(config.grpc_address, grpc.ssl_server_credentials([pair])))
