"""The chat's WebSocket: frames in, tasks started, frames out. One per tab.

A handler only starts a task and returns, because Channels runs one handler at a time per connection and Stop must be
heard at once. Answers belong to no socket: what is cancelled here is only the following. Knows no flow and no engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error as DatabaseError

from chatsite.accounts.callers import caller_of_user
from chatsite.accounts.grants import Grant, watch
from chatsite.chat import frames, limits
from chatsite.chat.ask import Asked, ask, ask_again, go_on
from chatsite.chat.ending import completed, stop
from chatsite.chat.followers import Followers
from chatsite.chat.following import load
from chatsite.chat.framing import accepted_frame
from chatsite.chat.models import Conversation
from chatsite.chat.notices import Changed, Started, board
from chatsite.chat.session import session_key, user_of_session
from chatsite.chat.sockets import sockets
from chatsite.chat.store import Question
from chatsite.chat.telling import frames_of
from chatsite.chat.warming import warm
from chatsite.db import run_in_db
from chatsite.engines import served
from chatsite.errors import InternalError, NotFound, SiteError, StorageUnavailable
from chatsite.health import is_draining
from chatsite.metrics import open_sockets

logger = logging.getLogger(__name__)

HEARTBEAT_S = 15.0


class ChatConsumer(AsyncWebsocketConsumer):
    """One tab. `channel_layer_alias` names no layer: notices have one subscription per process, not per socket."""

    channel_layer_alias = "none"

    async def connect(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()  # sends keep their order
        self._bucket = limits.TokenBucket()
        self._num_over_rate = 0
        self._watched: UUID | None = None
        self._is_closing = False
        self._gone = asyncio.Event()
        self._session_key = session_key(self.scope)
        try:
            user = await run_in_db(user_of_session, self._session_key, renews=False)
        except DatabaseError as error:
            logger.warning("a socket is refused, the database is away: %s", error)
            user = None
            await self.close()
            self._is_closing = True
        self._followers = Followers(user.pk if user else 0, self._say)
        if self._is_closing:
            return
        await self.accept()
        if user is None or is_draining():
            await self._close(limits.CLOSE_SIGNED_OUT if user is None else limits.CLOSE_DRAINING)
            return
        self.caller = caller_of_user(user)
        self._unwatch = watch.add(Grant.of_session(user, self._session_key), self._on_access_ended)
        sockets.add(self)
        board.join(self.caller.user_id, self)
        open_sockets.inc()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without the thread on which Channels tidies up connections before each message: `run_in_db` leaves none."""
        await getattr(self, get_handler_name(message))(message)

    async def websocket_receive(self, message: dict[str, Any]) -> None:
        """Decodes a frame and starts its handler; whatever the frame holds, the socket stays open."""
        if self._is_closing:
            return
        if not self._bucket.take():
            await self._on_flood()
            return
        if self._bucket.is_calm:
            self._num_over_rate = 0
        if len(self._tasks) >= limits.MAX_TASKS:
            await self._close(limits.CLOSE_FLOOD)
            return
        frame = self._decoded(message)
        self._start(self._say(frame) if isinstance(frame, frames.ErrorFrame) else self._handle(frame))

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        if self in sockets:
            sockets.discard(self)
            board.leave(self.caller.user_id, self)
            open_sockets.dec()
            self._unwatch()
        self._gone.set()
        await self._watch(None)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._followers.close()
        raise StopConsumer

    def on_started(self, started: Started) -> None:
        self._start(self._say(frames.StartedFrame(started.conversation, started.generation)))

    def on_changed(self, changed: Changed) -> None:
        self._start(self._say_changed(changed))

    def _on_access_ended(self) -> None:
        self._start(self._close(limits.CLOSE_SIGNED_OUT))

    async def drain(self) -> None:
        """Says that the server stops soon."""
        await self._say(frames.Draining())

    async def end(self) -> None:
        """Closes because the server stops; returns when the socket is gone."""
        await self._close(limits.CLOSE_DRAINING)
        await self._gone.wait()

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
            await self._say(
                _error_frame(StorageUnavailable("The server cannot store or read anything now."), frame)
            )
        except Exception:
            logger.exception("a %s frame broke its handler", type(frame).__name__)
            await self._say(_error_frame(InternalError("Something went wrong on the server."), frame))

    async def _obey(self, frame: frames.FromClient) -> None:
        match frame:
            case frames.Ping():
                await self._check_session(renews=False)
                await self._say(frames.Pong())
            case frames.Hello(protocol):
                await self._welcome(protocol)
            case frames.Send():
                await self._send_question(frame)
            case frames.Regenerate(client_message_id, message):
                await self._answering(
                    client_message_id, partial(ask_again, self.caller, client_message_id, message)
                )
            case frames.Continue(client_message_id, message):
                await self._answering(
                    client_message_id, partial(go_on, self.caller, client_message_id, message)
                )
            case frames.Stop(generation):
                await self._check_session()
                await stop((await run_in_db(load, self.caller.user_id, generation)).pk)
            case frames.Attach(generation):
                await self._check_session(renews=False)
                await self._followers.attach(generation)
            case frames.Detach(generation):
                self._followers.detach(generation)
            case frames.Watch(conversation):
                await self._watch(conversation)
            case frames.Warm(conversation, draft):
                await self._check_session()
                await warm(self.caller, conversation, draft)

    async def _welcome(self, protocol: int) -> None:
        if protocol != frames.PROTOCOL:
            message = f"this server speaks protocol {frames.PROTOCOL}; reload the page."
            await self._say(frames.ErrorFrame(code="protocol_mismatch", message=message))
            return
        info = (await served()).chosen()
        await self._say(
            frames.Welcome(
                protocol=frames.PROTOCOL,
                model=info.model if info else "",
                is_trial_model=info.is_trial_model if info else False,
                heartbeat_s=HEARTBEAT_S,
            )
        )

    async def _send_question(self, frame: frames.Send) -> None:
        question = Question(
            frame.client_message_id,
            frame.text,
            frame.conversation,
            frame.parent,
            frame.branch,
            frame.temporary,
        )
        await self._answering(frame.client_message_id, partial(ask, self.caller, question))

    async def _answering(
        self, client_message_id: UUID, asking: Callable[[], Coroutine[Any, Any, Asked]]
    ) -> None:
        """Acknowledges, follows, and lets other tabs know. A socket that closes meanwhile leaves no half question."""
        async with self._sending:
            await self._check_session()  # in the lock: outside it a later frame could overtake
            asked = await completed(asking())
        stored = asked.stored
        await self._say(accepted_frame(client_message_id, stored))
        if stored.is_new and asked.live is not None:
            await self._followers.follow(asked.live)
            await board.asked(self.caller.user_id, stored.conversation, stored.generation, by=self)
        else:
            await self._followers.attach(stored.generation)

    async def _watch(self, conversation: UUID | None) -> None:
        if conversation is not None:
            await self._check_session(renews=False)
            await run_in_db(_check_owner, self.caller.user_id, conversation)
        if self._watched is not None:
            board.unwatch(self._watched, self)
        self._watched = conversation
        if conversation is not None:
            board.watch(conversation, self)

    async def _say_changed(self, changed: Changed) -> None:
        for frame in await frames_of(changed):
            await self._say(frame)

    async def _check_session(self, *, renews: bool = True) -> None:
        """Closes the socket when its session has ended meanwhile. What a page does by itself renews nothing."""
        user = await run_in_db(user_of_session, self._session_key, renews=renews)
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
        resets_at=error.resets_at,
    )
