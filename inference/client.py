"""The engine as its callers see it: generate, attach, cancel, embed and the rest, over gRPC.

Knows the contract of engine.proto and turns every failure into `inference.errors`. Knows no model, no tokenizer
and no web framework: it is imported by processes that hold none of them. One client belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from inference.choices import choices_of, merged
from inference.errors import EngineError, InvalidRequest
from inference.proto import convert
from inference.proto import engine_pb2 as pb
from inference.proto.engine_pb2_grpc import EngineStub
from inference.proto.status import from_status
from inference.session import SharedSession
from inference.types import (
    Done,
    EngineInfo,
    EngineStats,
    Event,
    GenerateRequest,
    Owner,
    Segment,
    Submitted,
)

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
# What the engine takes in one call; more texts are more calls, one after the other.
MAX_TEXTS = 512
# As many texts on a busy CPU; a look-up of the cache has a shorter patience of its own.
EMBED_TIMEOUT_S = 60.0
# gRPC's own reconnect waits up to two minutes; a front is back in seconds.
CHANNEL_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.http2.max_pings_without_data", 0),
]

Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """One L2-normalised float32 vector per text, the tag of the embedder that made them, and what they cost."""

    vectors: list[array[float]]
    embedder: str
    num_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TokenCount:
    num_tokens: int
    max_context: int


class EngineClient:
    """One engine, reached lazily on the loop of the first call. Every call has a deadline."""

    def __init__(
        self,
        address: str,
        token: str = "",
        tls_cert: str = "",
        *,
        call_timeout_s: float = 10.0,
        patience_s: float = 20.0,
        keepalive_s: float = 10.0,
    ) -> None:
        self.address = address
        # A front that hangs, or a host that is gone without a word, would leave a session silent until its deadline.
        alive_ms = round(keepalive_s * 1000)
        names = ("grpc.keepalive_time_ms", "grpc.keepalive_timeout_ms", "grpc.http2.ping_timeout_ms")
        alive = [(name, alive_ms) for name in names]
        self._options = [*CHANNEL_OPTIONS, *alive]
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._tls_cert = tls_cert
        self._call_timeout_s = call_timeout_s
        self._patience_s = patience_s
        self._channel: grpc.aio.Channel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shared_session: SharedSession | None = None

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Event, None]:
        """Submits and follows one generation; the last event is Done. Leaving early does not cancel it."""
        await self.submit(request)
        async for event in self.attach(request.generation_id):
            yield event

    async def generate_choices(
        self, request: GenerateRequest, num_choices: int
    ) -> AsyncGenerator[tuple[int, Event], None]:
        """(choice, event) of several answers to one prompt; each choice ends with its Done. See `choices.choice_of`.

        One choice that is refused cancels the others and raises. Leaving early does not cancel them.
        """
        requests = choices_of(request, num_choices)
        await self._submit_all(requests)
        async for choice_and_event in merged([self.attach(each.generation_id) for each in requests]):
            yield choice_and_event

    async def submit(self, request: GenerateRequest) -> Submitted:
        """Raises a RequestRefused when the engine does not take the request."""
        with _sendable():
            message = convert.request_to_pb(request)
        reply = await self._call(self._stub().Submit, message)
        return Submitted(reply.engine, reply.prompt_tokens, reply.trimmed_messages, reply.num_waiting)

    async def attach(self, generation_id: str, after: int = 0) -> AsyncGenerator[Event, None]:
        """Events with seq > after, each once and in order, until Done. Raises GenerationUnknown, EngineUnavailable."""
        session = self._session()
        attachment = session.follow(generation_id, after)
        try:
            while True:
                message = await attachment.next()
                if message is None:
                    session.follow_again(attachment)
                    continue
                event = convert.event_from_pb(message)
                yield event
                if isinstance(event, Done):
                    return
        finally:
            session.leave(attachment)

    async def cancel(self, generation_id: str, reason: str = "", *, only_if_orphaned: bool = False) -> bool:
        """True when the generation was running and is ended now. `reason` is for the engine's log only.

        `only_if_orphaned`: for a keeper that follows without showing it to anybody. It ends as orphaned, and goes on
        when another client follows it.
        """
        with _sendable():
            message = pb.CancelRequest(
                generation_id=generation_id, reason=reason, only_if_orphaned=only_if_orphaned
            )
        reply: pb.CancelReply = await self._call(self._stub().Cancel, message)
        return reply.was_running

    async def warm(self, segments: Sequence[Segment], owner: Owner) -> bool:
        """Asks for the prefill of a history; False when the engine has better things to do."""
        with _sendable():
            message = pb.WarmRequest(
                segments=convert.segments_to_pb(segments), owner=convert.owner_to_pb(owner)
            )
        reply: pb.WarmReply = await self._call(self._stub().Warm, message)
        return reply.accepted

    async def forget(self, owner: Owner) -> int:
        """Drops the kept KV of a conversation and the logs of its ended answers; the number of blocks that were freed.

        An owner that names no conversation: the logs and the KV in memory of all that the user asked. What is on disk
        goes by the conversation.
        """
        with _sendable():
            message = pb.ForgetRequest(owner=convert.owner_to_pb(owner))
        reply: pb.ForgetReply = await self._call(self._stub().Forget, message)
        return reply.freed_blocks

    async def count_tokens(self, segments: Sequence[Segment]) -> TokenCount:
        with _sendable():
            message = pb.CountTokensRequest(segments=convert.segments_to_pb(segments))
        reply = await self._call(self._stub().CountTokens, message)
        return TokenCount(reply.num_tokens, reply.max_context)

    async def embed(self, texts: Sequence[str]) -> EmbedResult:
        starts = range(0, max(1, len(texts)), MAX_TEXTS)
        parts = [await self._embed(texts[start : start + MAX_TEXTS]) for start in starts]
        vectors = [vector for part in parts for vector in part.vectors]
        return EmbedResult(vectors, parts[0].embedder, sum(part.num_tokens for part in parts))

    async def _embed(self, texts: Sequence[str]) -> EmbedResult:
        with _sendable():
            message = pb.EmbedRequest(texts=texts)
        reply = await self._call(self._stub().Embed, message, EMBED_TIMEOUT_S)
        num_tokens = sum(vector.num_tokens for vector in reply.vectors)
        return EmbedResult([_floats(vector.values) for vector in reply.vectors], reply.embedder, num_tokens)

    async def verify(self, pairs: Iterable[tuple[str, str]]) -> list[float]:
        """One score per pair, 1 = same meaning. Raises NotSupported where no verifier is loaded."""
        with _sendable():
            message = pb.VerifyRequest(pairs=[pb.Pair(first=first, second=second) for first, second in pairs])
        return list((await self._call(self._stub().Verify, message, EMBED_TIMEOUT_S)).scores)

    async def info(self) -> EngineInfo:
        return convert.info_from_pb(await self._call(self._stub().Info, pb.InfoRequest()))

    async def stats(self) -> EngineStats:
        return convert.stats_from_pb(await self._call(self._stub().Stats, pb.StatsRequest()))

    async def health(self) -> bool:
        """True when the engine itself says that it can serve; False also when it cannot be reached."""
        check = health_pb2_grpc.HealthStub(self._connected()).Check
        try:
            reply = await self._call(check, health_pb2.HealthCheckRequest())
        except EngineError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    async def close(self) -> None:
        """Ends the stream and the channel; followers get EngineUnavailable."""
        if self._shared_session is not None:
            await self._shared_session.close()
        if self._channel is not None:
            await self._channel.close()
        self._channel = self._loop = self._shared_session = None

    async def _submit_all(self, requests: Sequence[GenerateRequest]) -> None:
        """At once, so that the engine sees all that share the prompt before it reads it."""
        results = await asyncio.gather(*map(self.submit, requests), return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors:
            ids = [request.generation_id for request in requests]
            cancels = (self.cancel(generation_id, "another choice was refused") for generation_id in ids)
            await asyncio.gather(*cancels, return_exceptions=True)
            raise errors[0]

    async def _call(self, method: Any, message: Any, timeout_s: float | None = None) -> Any:
        try:
            return await method(message, timeout=timeout_s or self._call_timeout_s, metadata=self._metadata)
        except grpc.aio.AioRpcError as status:
            raise from_status(status) from status

    def _stub(self) -> EngineStub:
        return EngineStub(self._connected())

    def _session(self) -> SharedSession:
        if self._shared_session is None:
            session = self._stub().Session

            def open_stream(requests: AsyncIterator[pb.SessionCommand], deadline_s: float) -> Any:
                return session(requests, timeout=deadline_s, metadata=self._metadata)

            self._shared_session = SharedSession(open_stream, patience_s=self._patience_s)
        return self._shared_session

    def _connected(self) -> grpc.aio.Channel:
        loop = asyncio.get_running_loop()
        if self._channel is None:
            self._loop, self._channel = loop, self._new_channel()
        if self._loop is not loop:
            raise RuntimeError("an EngineClient belongs to the event loop of its first call")
        return self._channel

    def _new_channel(self) -> grpc.aio.Channel:
        if self.address.startswith("unix:"):
            return grpc.aio.insecure_channel(self.address, options=self._options)
        authority = Path(self._tls_cert).read_bytes() if self._tls_cert else None
        credentials = grpc.ssl_channel_credentials(authority)
        return grpc.aio.secure_channel(self.address, credentials, options=self._options)


@contextmanager
def _sendable() -> Iterator[None]:
    """Around the making of a message from what a caller gave."""
    try:
        yield
    except convert.UNSENDABLE as error:
        raise InvalidRequest(f"the request cannot be sent: {error}") from error


def _floats(little_endian: bytes) -> array[float]:
    values = array("f")
    values.frombytes(little_endian)
    if sys.byteorder == "big":
        values.byteswap()
    return values
