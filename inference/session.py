"""The client's one event stream: every generation that this process follows travels on it.

Knows how to open the stream, to re-open it after the last seen event and to hand events to their followers.
Does not know what an event means beyond its number, nor any call but Session.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Callable

import grpc

from inference.errors import BY_CODE, EngineError, EngineUnavailable, GenerationUnknown, Unauthenticated
from inference.proto import engine_pb2 as pb
from inference.proto.status import from_status

logger = logging.getLogger(__name__)

# A follower that is so far behind takes no more, and attaches again when it has read what it holds.
MAX_QUEUED_EVENTS = 1024
# The stream itself has a deadline too; it is re-opened without a follower noticing.
SESSION_DEADLINE_S = 600.0
FIRST_BACKOFF_S = 0.05
MAX_BACKOFF_S = 1.0

OpenStream = Callable[[AsyncIterator[pb.SessionCommand], float], "grpc.aio.StreamStreamCall"]


class Attachment:
    """One follower of one generation. Logged events are never lost; progress events give way first."""

    def __init__(self, generation_id: str, after: int) -> None:
        self.generation_id = generation_id
        self.received_seq = after
        self.consumed_seq = after
        self.is_overflowed = False
        self._events: deque[pb.Event] = deque()
        self._error: EngineError | None = None
        self._changed = asyncio.Event()

    def offer(self, event: pb.Event) -> None:
        """Takes an event unless it was seen or the reader is MAX_QUEUED_EVENTS behind."""
        if self.is_overflowed:
            return
        if event.seq == 0:
            if len(self._events) < MAX_QUEUED_EVENTS // 2:
                self._push(event)
            return
        if event.seq != self.received_seq + 1:
            return  # seen already, or beyond a gap that another follower's attach left: ours follows
        if len(self._events) >= MAX_QUEUED_EVENTS:
            self.is_overflowed = (
                True  # what is queued stays: reading it is the progress before the next attach
            )
            return
        self.received_seq = event.seq
        self._push(event)

    def fail(self, error: EngineError) -> None:
        self._error = error
        self._changed.set()

    def resume(self) -> None:
        """Forgets the overflow; events after the consumed one are expected again."""
        self.is_overflowed = False
        self.received_seq = self.consumed_seq

    async def next(self) -> pb.Event | None:
        """The next event in order, or None when the follower has to attach again. Raises the failure."""
        while not self._events:
            if self.is_overflowed:
                return None
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()
        event = self._events.popleft()
        self.consumed_seq = max(self.consumed_seq, event.seq)
        return event

    def _push(self, event: pb.Event) -> None:
        self._events.append(event)
        self._changed.set()


class SharedSession:
    """Runs while somebody follows something. `patience_s`: how long a lost front is waited for."""

    def __init__(
        self, open_stream: OpenStream, *, deadline_s: float = SESSION_DEADLINE_S, patience_s: float = 20.0
    ) -> None:
        self._open_stream = open_stream
        self._deadline_s = deadline_s
        self._patience_s = patience_s
        self._followers: dict[str, set[Attachment]] = {}
        self._commands: asyncio.Queue[pb.SessionCommand | None] | None = None  # None in it: the stream ended
        self._task: asyncio.Task[None] | None = None
        self.num_opened = 0

    def follow(self, generation_id: str, after: int) -> Attachment:
        """An attachment that receives every logged event with seq > after."""
        attachment = Attachment(generation_id, after)
        self._followers.setdefault(generation_id, set()).add(attachment)
        self._send_attach(generation_id, after)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="engine-session")
        return attachment

    def follow_again(self, attachment: Attachment) -> None:
        """After an overflow: the stream starts again behind the last event that was read."""
        attachment.resume()
        self._send_attach(attachment.generation_id, attachment.consumed_seq)

    def leave(self, attachment: Attachment) -> None:
        followers = self._followers.get(attachment.generation_id, set())
        followers.discard(attachment)
        if not followers and self._followers.pop(attachment.generation_id, None) is not None:
            self._send(pb.SessionCommand(detach=pb.Detach(generation_id=attachment.generation_id)))

    async def close(self) -> None:
        self._fail_all(EngineUnavailable("the client was closed"))
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        try:
            await self._keep_streaming()
        except Exception as error:
            self._fail_all(EngineError(f"the event stream broke: {error!r}"))
            raise

    async def _keep_streaming(self) -> None:
        backoff_s, lost_at = FIRST_BACKOFF_S, None
        loop = asyncio.get_running_loop()
        while self._followers:
            try:
                if await self._stream():
                    backoff_s, lost_at = FIRST_BACKOFF_S, None
                error: EngineError = EngineUnavailable("the engine closed the event stream")
            except grpc.aio.AioRpcError as status:
                if status.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    backoff_s, lost_at = FIRST_BACKOFF_S, None
                    continue  # our own deadline: open the next stream at once
                error = from_status(status)
            if isinstance(error, Unauthenticated):
                self._fail_all(error)
                return
            lost_at = loop.time() if lost_at is None else lost_at
            if loop.time() - lost_at > self._patience_s:
                self._fail_all(EngineUnavailable(f"the engine cannot be reached: {error.message}"))
                return
            await asyncio.sleep(backoff_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads clients, no secret
            backoff_s = min(backoff_s * 2, MAX_BACKOFF_S)

    async def _stream(self) -> bool:
        """Serves one stream until it ends. True when the front said anything on it."""
        commands = self._commands = asyncio.Queue()
        for generation_id, followers in self._followers.items():
            self._send_attach(generation_id, min(follower.received_seq for follower in followers))
        call = self._open_stream(self._requests(commands), self._deadline_s)
        self.num_opened += 1
        has_spoken = False
        try:
            async for event_pack in call:
                has_spoken = True
                for event in event_pack.events:
                    self._dispatch(event)
        except grpc.aio.AioRpcError as status:
            if has_spoken and status.code() is grpc.StatusCode.UNAVAILABLE:
                return True
            raise
        finally:
            self._commands = None
            # gRPC's task that reads the requests outlives a call that ended by itself.
            commands.put_nowait(None)
            call.cancel()
        return has_spoken

    @staticmethod
    async def _requests(
        commands: asyncio.Queue[pb.SessionCommand | None],
    ) -> AsyncIterator[pb.SessionCommand]:
        while (command := await commands.get()) is not None:
            yield command

    def _dispatch(self, event: pb.Event) -> None:
        followers = self._followers.get(event.generation_id, set())
        if event.WhichOneof("kind") == "attach_failed":
            failure = event.attach_failed
            error = BY_CODE.get(failure.code, GenerationUnknown)(failure.message)
            for follower in followers:
                follower.fail(error)
            return
        for follower in followers:
            follower.offer(event)

    def _fail_all(self, error: EngineError) -> None:
        for followers in self._followers.values():
            for follower in followers:
                follower.fail(error)

    def _send_attach(self, generation_id: str, after: int) -> None:
        self._send(pb.SessionCommand(attach=pb.Attach(generation_id=generation_id, after=after)))

    def _send(self, command: pb.SessionCommand) -> None:
        if self._commands is not None:  # else: the next stream starts with an attach for each follower
            self._commands.put_nowait(command)
