"""The gRPC door: parse, call the engine once, format. Errors become statuses in one place.

Knows protobuf and gRPC. Rules live in `front.engine`; sockets and credentials in `front.door`.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from inference.errors import EngineError, InvalidRequest, NotSupported
from inference.front.engine import Engine
from inference.front.sessions import ClientSession
from inference.proto import convert
from inference.proto import engine_pb2 as pb
from inference.proto.engine_pb2_grpc import EngineServicer
from inference.proto.status import to_status

logger = logging.getLogger(__name__)

MAX_TEXTS = 512
FORGET_TIMEOUT_S = 1.0
WATCH_INTERVAL_S = 0.2

Context: TypeAlias = grpc.aio.ServicerContext
Reply = TypeVar("Reply")


class EngineService(EngineServicer):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions: set[ClientSession] = set()

    def end_sessions(self) -> None:
        """Every stream ends once it has delivered what is logged."""
        for session in self._sessions:
            session.end()

    async def Session(
        self, commands: AsyncIterator[pb.SessionCommand], context: Context
    ) -> AsyncIterator[pb.EventPack]:
        session = ClientSession(self._engine.archive.find)
        self._sessions.add(session)
        reader = asyncio.create_task(_obey_all(session, commands))
        try:
            while (pack := await session.next_pack()) is not None:
                yield pack
        finally:
            reader.cancel()
            session.close()
            self._sessions.discard(session)

    async def Submit(self, request: pb.SubmitRequest, context: Context) -> pb.SubmitReply:
        submitted = await _answered(context, self._engine.submit(convert.request_from_pb(request)))
        return pb.SubmitReply(
            engine=submitted.engine,
            prompt_tokens=submitted.prompt_tokens,
            trimmed_messages=submitted.trimmed_messages,
            num_waiting=submitted.num_waiting,
        )

    async def Cancel(self, request: pb.CancelRequest, context: Context) -> pb.CancelReply:
        was_running = self._engine.cancel(
            request.generation_id, request.reason, only_if_orphaned=request.only_if_orphaned
        )
        return pb.CancelReply(was_running=was_running)

    async def Warm(self, request: pb.WarmRequest, context: Context) -> pb.WarmReply:
        segments, owner = convert.segments_from_pb(request.segments), convert.owner_from_pb(request.owner)
        accepted, prompt_tokens = await _answered(context, self._engine.warm(segments, owner))
        return pb.WarmReply(accepted=accepted, prompt_tokens=prompt_tokens)

    async def Forget(self, request: pb.ForgetRequest, context: Context) -> pb.ForgetReply:
        freed = await _answered(
            context, self._engine.forget(convert.owner_from_pb(request.owner), FORGET_TIMEOUT_S)
        )
        return pb.ForgetReply(freed_blocks=freed)

    async def CountTokens(self, request: pb.CountTokensRequest, context: Context) -> pb.CountTokensReply:
        counting = self._engine.count_tokens(convert.segments_from_pb(request.segments))
        num_tokens, max_context = await _answered(context, counting)
        return pb.CountTokensReply(num_tokens=num_tokens, max_context=max_context)

    async def Embed(self, request: pb.EmbedRequest, context: Context) -> pb.EmbedReply:
        return await _answered(context, self._embed(list(request.texts)))

    async def Verify(self, request: pb.VerifyRequest, context: Context) -> pb.VerifyReply:
        return await _answered(context, self._verify([(pair.first, pair.second) for pair in request.pairs]))

    async def Info(self, request: pb.InfoRequest, context: Context) -> pb.InfoReply:
        return await _answered(context, self._info())

    async def Stats(self, request: pb.StatsRequest, context: Context) -> pb.StatsReply:
        return convert.stats_to_pb(self._engine.stats())

    async def _info(self) -> pb.InfoReply:
        return convert.info_to_pb(self._engine.info())

    async def _embed(self, texts: list[str]) -> pb.EmbedReply:
        _check_number(len(texts), "texts")
        core, embed_ids = self._engine.loaded(), self._engine.model.embed_ids
        if embed_ids is None or not core.embedder:
            raise NotSupported("this engine has no embedding lane")
        token_ids = await asyncio.to_thread(embed_ids, texts, core.embed_prefix, core.embed_max_tokens)
        answer = await self._engine.lane.embed(token_ids)
        size = 4 * answer.dim
        vectors = [
            pb.Vector(values=answer.vectors[size * row : size * (row + 1)], num_tokens=len(ids))
            for row, ids in enumerate(token_ids)
        ]
        return pb.EmbedReply(vectors=vectors, embedder=core.embedder)

    async def _verify(self, pairs: list[tuple[str, str]]) -> pb.VerifyReply:
        _check_number(len(pairs), "pairs")
        core, pair_ids = self._engine.loaded(), self._engine.model.pair_ids
        if pair_ids is None or not core.supports_verify:
            raise NotSupported("this engine has no verifier")
        answer = await self._engine.lane.verify(
            await asyncio.to_thread(pair_ids, pairs, core.verify_max_tokens)
        )
        return pb.VerifyReply(scores=answer.scores)


class HealthService(health_pb2_grpc.HealthServicer):
    """The standard health protocol; it says SERVING only while the engine is ready."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        return self._response()

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        last: health_pb2.HealthCheckResponse | None = None
        while True:
            response = self._response()
            if response != last:
                yield response
                last = response
            await asyncio.sleep(WATCH_INTERVAL_S)

    def _response(self) -> health_pb2.HealthCheckResponse:
        response = health_pb2.HealthCheckResponse
        return response(status=response.NOT_SERVING if self._engine.reason else response.SERVING)


class TokenCheck(grpc.aio.ServerInterceptor):
    """Refuses every call that does not carry the configured bearer token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        details: grpc.HandlerCallDetails,
    ) -> Any:
        metadata = dict(details.invocation_metadata or ())
        given = metadata.get("authorization", "")
        if hmac.compare_digest(given.encode() if isinstance(given, str) else given, self._expected):
            return await continuation(details)
        return _refusing(await continuation(details))


def _refusing(handler: Any) -> Any:
    """A handler of the same shape that answers UNAUTHENTICATED."""

    async def refuse(request: Any, context: Context) -> None:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "wrong or missing token")

    async def refuse_stream(request: Any, context: Context) -> AsyncIterator[Any]:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "wrong or missing token")
        yield

    if handler is None:
        return None
    if handler.request_streaming:
        return grpc.stream_stream_rpc_method_handler(refuse_stream)
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(refuse_stream)
    return grpc.unary_unary_rpc_method_handler(refuse)


async def _obey_all(session: ClientSession, commands: AsyncIterator[pb.SessionCommand]) -> None:
    """A reader that fails ends the stream: the client opens the next one instead of waiting on a deaf one."""
    try:
        async for command in commands:
            session.obey(command)
    except Exception:
        logger.exception("a client's commands could not be read any further")
        session.end()


async def _answered(context: Context, work: Awaitable[Reply]) -> Reply:
    """The result of `work`; an engine error ends the call with its status."""
    try:
        return await work
    except EngineError as error:
        status, text, metadata = to_status(error)
        await context.abort(status, text, metadata)
        raise  # abort has raised already


def _check_number(number: int, what: str) -> None:
    if not 1 <= number <= MAX_TEXTS:
        raise InvalidRequest(f"1 to {MAX_TEXTS} {what} at once, not {number}")
