"""The web server: daphne with what it lacks. Back-pressure, bounded bodies, and an end that loses nothing.

Daphne buffers without bound for a client that does not read, takes bodies of any size, and dies on SIGTERM. Here a
send waits until the client has read, a body has a size and a time, and the caller decides when to stop.
Knows Twisted and daphne; knows no chat.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from chatsite.reactor import reactor  # isort: skip  # before daphne, which would bring one of its own

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet.interfaces import IPushProducer
from twisted.logger import ILogObserver, globalLogBeginner
from zope.interface import implementer

logger = logging.getLogger(__name__)

BODY_WITHIN_S = 30.0  # a slow phone sends 2 MB in that time; a slow-body attack does not hold longer
LINGER_S = 2.0  # what still comes after a refusal is read and dropped for so long
STREAM_STALL_S = 60.0  # an HTTP client that reads nothing of its stream for so long is dropped
HANDSHAKE_WITHIN_S = 5
PING_EVERY_S = 15
PING_ANSWER_WITHIN_S = 30
# Threads that work on rows hold the interpreter for so long before the loop is let in, instead of Python's 5 ms: every
# stream waits meanwhile, and there may be several such threads before it.
THREAD_TURN_S = 0.0005


@implementer(IPushProducer)
class Gate:
    """Closed while more than 64 KiB (Twisted's buffer) wait for the client; senders wait at it."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    async def passed(self) -> None:
        """Returns when there is room. One sender's message may close it for the next one."""
        while not self.is_open:
            await self._opened.wait()

    def pauseProducing(self) -> None:
        self._opened.clear()

    def resumeProducing(self) -> None:
        self._opened.set()

    def stopProducing(self) -> None:
        self._opened.set()


class BoundedRequest(WebRequest):
    """A request whose body ends in time and within the limit, also without Content-Length."""

    max_body_bytes = 2_000_000

    def gotLength(self, length: int | None) -> None:
        super().gotLength(length)
        self._num_body_bytes = 0
        self._late = reactor.callLater(BODY_WITHIN_S, self._drop)
        if length is not None and length > self.max_body_bytes:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:
        self._num_body_bytes += len(data)
        if self._num_body_bytes > self.max_body_bytes:
            self._refuse()
        elif not self._is_refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        self._stop_clock()
        if not self._is_refused:
            super().requestReceived(command, path, version)
        elif self.channel.transport is None:
            self._answer_refused(command, version)

    def connectionLost(self, reason: Any) -> None:
        self._stop_clock()
        super().connectionLost(reason)

    _is_refused = False
    _late: Any = None

    def _stop_clock(self) -> None:
        if self._late is not None and self._late.active():
            self._late.cancel()

    def _refuse(self) -> None:
        """413 in the form of the JSON doors. The rest of the body is not read, or with HTTP/2 read and dropped,
        because other requests share the connection."""
        if self._is_refused:
            return
        self._is_refused = True
        transport = self.channel.transport
        if transport is None:
            return  # a stream of HTTP/2: answered at the end of its body
        body = self._too_large()
        head = (
            "HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        transport.write(head.encode() + body)
        # Closing with unread input makes the kernel reset the connection, and the answer would be lost with it.
        transport.loseWriteConnection()
        reactor.callLater(LINGER_S, transport.abortConnection)

    def _answer_refused(self, command: bytes, version: bytes) -> None:
        self.method, self.clientproto = command, version
        self.setResponseCode(413)
        self.setHeader(b"content-type", b"application/json")
        self.write(self._too_large())
        self.finish()

    def _too_large(self) -> bytes:
        message = f"The request body is larger than {self.max_body_bytes} bytes."
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": "body_too_large"}
        return json.dumps({"error": error}).encode()

    def _drop(self) -> None:
        drop(self)


def drop(request: WebRequest) -> None:
    """Ends the connection at once; with HTTP/2 only the request's stream."""
    if request.channel is not None:
        (request.channel.transport or request.channel).abortConnection()


class BoundedFactory(HTTPFactory):
    def buildProtocol(self, addr: Any) -> Any:
        protocol = super().buildProtocol(addr)
        # Django reads forms. Twisted would do so, too, whole and on the loop, and hang up on one that it cannot read.
        protocol.requestFactory = partial(BoundedRequest, parsePOSTFormSubmission=False)
        return protocol

    def log(self, request: Any) -> None:
        """No access log, not even one whose lines are made and then thrown away."""


class PlainSocket(WebSocketProtocol):
    """Sends without the coloured words that autobahn makes of each write for a log that nobody keeps: they cost as much
    as all the rest of it."""

    def sendData(self, data: bytes, sync: bool = False, chopsize: int | None = None) -> None:
        if sync or chopsize or self.send_queue:
            super().sendData(data, sync, chopsize)
        else:
            self.transport.write(data)


class PlainSocketFactory(WebSocketFactory):
    protocol = PlainSocket


class ChatServer(Server):
    """Serves on the endpoints `listening` until `stop`. `run` starts `beside` on the same loop once it listens."""

    def __init__(
        self, application: Any, listening: Sequence[Any], max_body_bytes: int, max_message_bytes: int
    ) -> None:
        BoundedRequest.max_body_bytes = max_body_bytes
        super().__init__(
            application=application,
            endpoints=listening,
            signal_handlers=False,
            ping_interval=PING_EVERY_S,
            ping_timeout=PING_ANSWER_WITHIN_S,
            websocket_handshake_timeout=HANDSHAKE_WITHIN_S,
            websocket_max_message_size=max_message_bytes,
            websocket_max_frame_size=max_message_bytes,
            server_name="",
        )
        self.connections: dict[Any, dict[str, Any]] = {}
        self._gates: dict[Any, Gate] = {}
        self.failure: str = ""

    def run(self, beside: Callable[[], Awaitable[None]]) -> None:
        """Listens and turns the reactor. No access log: paths name conversations."""
        loop = reactor.loop
        asyncio.set_event_loop(loop)
        sys.setswitchinterval(THREAD_TURN_S)
        globalLogBeginner.beginLoggingTo([_ignore], redirectStandardIO=False, discardBuffer=True)
        self.http_factory = BoundedFactory(self)
        self.ws_factory = PlainSocketFactory(self, server=self.server_name)
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=self.ping_timeout,
            allowNullOrigin=True,  # the application decides about origins
            openHandshakeTimeout=self.websocket_handshake_timeout,
            maxMessagePayloadSize=self.websocket_max_message_size,
            maxFramePayloadSize=self.websocket_max_frame_size,
        )
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        for endpoint in self.endpoints:
            listener = endpoint.listen(self.http_factory)
            listener.addCallbacks(self.listen_success, self.listen_error)
            self.listeners.append(listener)
        task = loop.create_task(self._beside(beside))
        reactor.run(installSignalHandlers=False)
        if not task.done():
            task.cancel()

    def listen_error(self, failure: Any) -> None:
        self.failure = failure.getErrorMessage()
        reactor.callWhenRunning(self.stop)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Hands a message to the client's connection as soon as that has room for it."""
        kind = message["type"]
        if kind == "websocket.send" and protocol in self._gates:
            await self._gates[protocol].passed()
        elif kind == "http.response.body":
            await self._passed_to_http(protocol, is_last=not message.get("more_body", False))
        await super().handle_reply(protocol, message)
        if kind == "websocket.accept":
            self._watch_socket(protocol)

    def protocol_disconnected(self, protocol: Any) -> None:
        gate = self._gates.pop(protocol, None)
        if gate is not None:
            gate.stopProducing()
        super().protocol_disconnected(protocol)

    def _watch_socket(self, protocol: Any) -> None:
        # The HTTP channel that the socket grew out of is still registered with the transport.
        gate = self._gates[protocol] = Gate()
        protocol.transport.unregisterProducer()
        protocol.transport.registerProducer(gate, True)

    async def _passed_to_http(self, protocol: Any, *, is_last: bool) -> None:
        """Waits for a client that reads its stream slowly; one that does not read at all is dropped."""
        if protocol.channel is None or protocol._disconnected:
            return
        if protocol not in self._gates and not is_last:
            self._gates[protocol] = Gate()
            protocol.registerProducer(self._gates[protocol], True)
        gate = self._gates.get(protocol)
        if gate is None:
            return
        if not gate.is_open:
            try:
                async with asyncio.timeout(STREAM_STALL_S):
                    await gate.passed()
            except TimeoutError:
                drop(protocol)
        if is_last and self._gates.pop(protocol, None) is not None and protocol.channel is not None:
            protocol.unregisterProducer()

    async def _beside(self, beside: Callable[[], Awaitable[None]]) -> None:
        try:
            await beside()
        finally:
            if reactor.running:
                self.stop()


@implementer(ILogObserver)
def _ignore(event: Any) -> None:
    """Twisted logs paths and addresses; ours are not to be logged."""
