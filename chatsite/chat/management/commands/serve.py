"""`manage.py serve`: one web process, from start to a stop that loses nothing."""

from __future__ import annotations

import asyncio
import gc
import signal
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chatsite import logs
from chatsite.accounts.grants import watch
from chatsite.chat.adoption import sweep_forever
from chatsite.chat.notices import board
from chatsite.chat.running import running
from chatsite.chat.sockets import end_all, say_draining
from chatsite.engines import close_engines
from chatsite.grpc_door import server as grpc_door
from chatsite.grpc_door.server import GrpcDoor
from chatsite.health import start_draining
from semcache.service import flush_hits

SWEEP_EVERY_S = 1.0
DRAINING_SAID_WITHIN_S = 1.0
SOCKETS_CLOSE_WITHIN_S = 2.0
# A character of a message takes at most six bytes in JSON (an escape), and the frame has a little more.
BYTES_PER_CHAR = 6
FRAME_BYTES = 64 * 1024


class Command(BaseCommand):
    help = "Serves the site: HTTP, WebSockets and event streams. SIGTERM ends it in order."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=int, default=settings.CONFIG.port, help="default: %(default)s (PORT)"
        )
        parser.add_argument("--bind", default=settings.CONFIG.bind, help="default: %(default)s (CHAT_BIND)")

    def handle(self, *args: Any, port: int, bind: str, **options: Any) -> None:
        self.check(tags=["serving"], include_deployment_checks=True)
        logs.catch_the_rest()
        from chatsite.asgi import application
        from chatsite.endpoints import CertificateUnusable, certificate, endpoint
        from chatsite.serving import ChatServer, reactor  # Twisted's: only in a process that serves

        config = settings.CONFIG
        try:
            tls = certificate(config.tls_cert, config.tls_key) if config.tls_cert else None
        except CertificateUnusable as error:
            raise CommandError(str(error)) from error
        server = ChatServer(
            application,
            listening=[endpoint(reactor, port, bind, tls)],
            max_body_bytes=config.max_body_bytes,
            max_message_bytes=max(
                config.max_body_bytes, BYTES_PER_CHAR * config.max_message_chars + FRAME_BYTES
            ),
        )

        async def beside() -> None:
            if not server.failure:
                self.stdout.write(f"web: listening on {bind}:{port}" + (" with TLS" if tls else ""))
            door = await grpc_door.opened(config)
            if door is not None:
                self.stdout.write(f"web: gRPC on port {door.port}")
            await _serve_until_told()
            self.stdout.write("web: draining")
            await drain(config.drain_s, door)

        spare_the_collector()
        server.run(beside)
        if server.failure:
            raise CommandError(f"cannot listen on {bind}:{port}: {server.failure}")


def spare_the_collector() -> None:
    """What a start made stays: looking at it again stopped every stream for a third of a second."""
    gc.collect()
    gc.freeze()
    # Full collections come by how much is new beside what is old, which is little now: a tenth as often as they would.
    gc.set_threshold(700, 10, 100)


async def _serve_until_told() -> None:
    """Returns at SIGTERM or SIGINT; meanwhile orphans are adopted, notices heard, rights checked."""
    told = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, told.set)
    chores = [
        asyncio.create_task(sweep_forever(running(), SWEEP_EVERY_S), name="sweep"),
        asyncio.create_task(board.listen(), name="notices"),
        asyncio.create_task(watch.recheck_forever(), name="grants"),
    ]
    await told.wait()
    for chore in chores:
        chore.cancel()
    await asyncio.gather(*chores, return_exceptions=True)


async def drain(patience_s: float, door: GrpcDoor | None = None) -> None:
    """Not ready, tell the pages, let answers finish or hand them over, close the doors, say goodbye."""
    start_draining()
    if door is not None:
        await door.say_draining()
    await say_draining(DRAINING_SAID_WITHIN_S)
    await running().drain(patience_s)
    if door is not None:
        await door.close(SOCKETS_CLOSE_WITHIN_S)
    await end_all(SOCKETS_CLOSE_WITHIN_S)
    await flush_hits()
    await close_engines()
