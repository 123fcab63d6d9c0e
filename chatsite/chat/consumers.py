"""The chat's WebSocket: frames in, tasks started, frames out. One per tab.

A handler only starts a task and returns, because Channels runs one handler at a time per connection and Stop must be
heard at once. Answers belong to no socket: what is cancelled here is only the following. Knows no flow and no engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import Error as DatabaseError

from chatsite.accounts.callers import caller_of_user
from chatsite.chat import frames, limits
from chatsite.chat.ask import Asked, ask, ask_again
from chatsite.chat.coalesce import coalesce
from chatsite.chat.following import followed, load
from chatsite.chat.framing import Framer, accepted_frame
from chatsite.chat.live import HandedOver, LiveAnswer
from chatsite.chat.models import Conversation
from chatsite.chat.notices import board
from chatsite.chat.record import completed
from chatsite.chat.reply import stop
from chatsite.chat.session import session_key, user_of_session
from chatsite.chat.sockets import sockets
from chatsite.chat.store import Question
from chatsite.chat.warming import warm
from chatsite.db import run_in_db
from chatsite.engine import engine_info
from chatsite.errors import NotFound, SiteError
from chatsite.health import is_draining
from chatsite.metrics import open_sockets

logger = logging.getLogger(__name__)

HEARTBEAT_S = 15.0
# An answer that was handed over is adopted within a second or two.
REATTACH_S = 0.5


class ChatConsumer(AsyncWebsocketConsumer):
    """One tab. `channel_layer_alias` names no layer: notices have one subscription per process, not per socket."""

    channel_layer_alias = "none"

    async def connect(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._followers: dict[UUID, asyncio.Task[None]] = {}
        self._sending = asyncio.Lock()  # sends keep their order
        self._bucket = limits.TokenBucket()
        self._num_over_rate = 0
        self._watched: UUID | None = None
        self._is_closing = False
        self._session_key = session_key(self.scope)
        user = await run_in_db(user_of_session, self._session_key)
        await self.accept()
        if user is None or is_draining():
            await self._close(limits.CLOSE_SIGNED_OUT if user is None else limits.CLOSE_DRAINING)
            return
        self.caller = caller_of_user(user)
        sockets.add(self)
        open_sockets.inc()

    async def websocket_receive(self, message: dict[str, Any]) -> None:
        """Decodes a frame and starts its handler; whatever the frame holds, the socket stays open."""
        if self._is_closing:
            return
        if not self._bucket.take():
            await self._on_flood()
            return
        frame = self._decoded(message)
        if isinstance(frame, frames.ErrorFrame):
            self._start(self._say(frame))
        elif len(self._tasks) >= limits.MAX_TASKS:
            await self._close(limits.CLOSE_FLOOD)
        else:
            self._start(self._handle(frame))

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        if self in sockets:
            sockets.discard(self)
            open_sockets.dec()
        await self._watch(None)
        tasks = [*self._tasks, *self._followers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise StopConsumer

    def on_started(self, conversation: UUID, generation: UUID) -> None:
        self._start(self._say(frames.StartedFrame(conversation=conversation, generation=generation)))

    async def drain(self) -> None:
        """Says that the server stops soon."""
        await self._say(frames.Draining())

    async def end(self) -> None:
        await self._close(limits.CLOSE_DRAINING)

    def _decoded(self, message: dict[str, Any]) -> frames.FromClient | frames.ErrorFrame:
        text = message.get("text")
        if text is None:
            return frames.ErrorFrame(code="invalid_frame", message="frames are text, not binary.")
        try:
            frame = frames.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            return frames.ErrorFrame(code="invalid_frame", message=f"the frame can't be read: {error}"[:300])
        if len(text) > limits.MAX_FRAME_CHARS and not isinstance(frame, frames.Send):
            return frames.ErrorFrame(code="frame_too_large", message="the frame is too large.")
        return frame

    async def _handle(self, frame: frames.FromClient) -> None:
        try:
            await self._obey(frame)
        except SiteError as error:
            await self._say(_error_frame(error, frame))
        except DatabaseError as error:
            logger.warning("a %s frame met a database that is away: %s", type(frame).__name__, error)
            away = SiteError("The server cannot store or read anything now.")
            away.code, away.retry_after_s = "storage_unavailable", 2.0
            await self._say(_error_frame(away, frame))
        except Exception:
            logger.exception("a %s frame broke its handler", type(frame).__name__)
            broken = SiteError("Something went wrong on the server.")
            broken.code = "internal_error"
            await self._say(_error_frame(broken, frame))

    async def _obey(self, frame: frames.FromClient) -> None:
        match frame:
            case frames.Ping():
                await self._check_session()
                await self._say(frames.Pong())
            case frames.Hello(protocol):
                await self._welcome(protocol)
            case frames.Send():
                await self._send_question(frame)
            case frames.Regenerate(client_message_id, message):
                await self._answering(client_message_id, partial(ask_again, self.caller, client_message_id, message))
            case frames.Stop(generation):
                await stop(await run_in_db(load, self.caller.user_id, generation))
            case frames.Attach(generation):
                self._follow(generation, self._attached(generation))
            case frames.Detach(generation):
                self._unfollow(generation)
            case frames.Watch(conversation):
                await self._watch(conversation)
            case frames.Warm(conversation):
                await warm(self.caller, conversation)

    async def _welcome(self, protocol: int) -> None:
        if protocol != frames.PROTOCOL:
            message = f"this server speaks protocol {frames.PROTOCOL}; reload the page."
            await self._say(frames.ErrorFrame(code="protocol_mismatch", message=message))
            return
        info = await engine_info()
        await self._say(
            frames.Welcome(
                protocol=frames.PROTOCOL,
                model=info.model if info else "",
                is_trial_model=info.is_trial_model if info else False,
                heartbeat_s=HEARTBEAT_S,
            )
        )

    async def _send_question(self, frame: frames.Send) -> None:
        await self._check_session()
        question = Question(
            frame.client_message_id, frame.text, frame.conversation, frame.parent, frame.branch, frame.temporary
        )
        await self._answering(frame.client_message_id, partial(ask, self.caller, question))

    async def _answering(self, client_message_id: UUID, asking: Callable[[], Coroutine[Any, Any, Asked]]) -> None:
        """Acknowledges, follows, and lets other tabs know. A socket that closes meanwhile leaves no half question."""
        async with self._sending:
            asked = await completed(asking())
        stored = asked.stored
        await self._say(accepted_frame(client_message_id, stored))
        if stored.is_new and asked.live is not None:
            self._follow(stored.generation, self._followed_from_start(asked.live))
            await board.started(stored.conversation, stored.generation, self)
        else:
            self._follow(stored.generation, self._attached(stored.generation))

    async def _followed_from_start(self, live: LiveAnswer) -> None:
        try:
            await self._stream(live, Framer(live), 0)
        except HandedOver:
            await self._attached_elsewhere(live.generation)

    async def _attached(self, generation: UUID) -> None:
        """A snapshot and what comes after it. Raises NotFound."""
        try:
            async with followed(self.caller.user_id, generation) as found:
                snapshot = found.live.snapshot()
                framer = Framer(found.live)
                await self._say(framer.snapshot(found, snapshot))
                await self._stream(found.live, framer, snapshot.num_pieces)
        except HandedOver:
            await self._attached_elsewhere(generation)

    async def _attached_elsewhere(self, generation: UUID) -> None:
        """The answer goes on in another process; when this one stops, the page finds it there."""
        if not is_draining():
            await asyncio.sleep(REATTACH_S)
            await self._attached(generation)

    async def _stream(self, live: LiveAnswer, framer: Framer, num_seen: int) -> None:
        config = settings.CONFIG
        merged = coalesce(live.follow(num_seen), config.coalesce_tokens, config.coalesce_ms / 1000)
        async with aclosing(merged) as events:
            async for event in events:
                frame = framer.frame(event)
                if frame is not None:
                    await self._say(frame)

    def _follow(self, generation: UUID, following: Coroutine[Any, Any, None]) -> None:
        self._unfollow(generation)
        if len(self._followers) >= limits.MAX_FOLLOWED:
            following.close()
            message = f"at most {limits.MAX_FOLLOWED} answers are followed at once."
            self._start(self._say(frames.ErrorFrame(code="too_many_followed", message=message, generation=generation)))
            return
        task = asyncio.create_task(self._guarded(generation, following))
        self._followers[generation] = task
        task.add_done_callback(lambda done: self._forget(generation, done))

    async def _guarded(self, generation: UUID, following: Coroutine[Any, Any, None]) -> None:
        try:
            await following
        except SiteError as error:
            await self._say(frames.ErrorFrame(code=error.code, message=error.message, generation=generation))
        except DatabaseError as error:
            logger.warning("%s can't be followed, the database is away: %s", generation, error)
            message = "The server cannot read anything now."
            await self._say(frames.ErrorFrame(code="storage_unavailable", message=message, generation=generation))

    def _unfollow(self, generation: UUID) -> None:
        task = self._followers.pop(generation, None)
        if task is not None:
            task.cancel()

    def _forget(self, generation: UUID, task: asyncio.Task[None]) -> None:
        if self._followers.get(generation) is task:
            del self._followers[generation]

    async def _watch(self, conversation: UUID | None) -> None:
        if conversation is not None:
            await run_in_db(_check_owner, self.caller.user_id, conversation)
        if self._watched is not None:
            board.unwatch(self._watched, self)
        self._watched = conversation
        if conversation is not None:
            board.watch(conversation, self)

    async def _check_session(self) -> None:
        """Closes the socket when its session has ended meanwhile."""
        user = await run_in_db(user_of_session, self._session_key)
        if user is None or user.pk != self.caller.user_id:
            await self._close(limits.CLOSE_SIGNED_OUT)
            raise NotFound("you are signed out.")

    async def _on_flood(self) -> None:
        self._num_over_rate += 1
        if self._num_over_rate == 1:
            message = f"more than {limits.FRAMES_PER_S:.0f} frames a second; slow down."
            self._start(self._say(frames.ErrorFrame(code="too_many_frames", message=message)))
        if self._num_over_rate > limits.MAX_ERRORS_OVER_RATE:
            await self._close(limits.CLOSE_FLOOD)

    async def _say(self, frame: frames.FromServer) -> None:
        """Sends when the client has read enough of what came before; one that reads nothing is closed."""
        if self._is_closing:
            return
        try:
            async with asyncio.timeout(limits.SEND_STALL_S):
                await self.send(text_data=frames.encode(frame))
        except TimeoutError:
            await self._close(limits.CLOSE_NOT_READING)

    async def _close(self, code: int) -> None:
        if not self._is_closing:
            self._is_closing = True
            await self.close(code=code)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _check_owner(user_id: int, conversation: UUID) -> None:
    if not Conversation.objects.filter(pk=conversation, owner=user_id).exists():
        raise NotFound("there is no such conversation.")


def _error_frame(error: SiteError, frame: frames.FromClient) -> frames.ErrorFrame:
    return frames.ErrorFrame(
        code=error.code,
        message=error.message,
        client_message_id=getattr(frame, "client_message_id", None),
        generation=getattr(frame, "generation", None),
        retry_after_s=error.retry_after_s,
    )
