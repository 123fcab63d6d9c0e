"""One stream of a client: questions come in, their events go out as they are made, side by side.

Knows the client's requests by their ids, and how many there may be at a time. Every answer is an ordinary turn of
`/v1`: it has this reader only, and ends when the reader goes. Knows protobuf; no call, no key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from chatsite.chat.admission import admitted
from chatsite.chat.events import Accepted, Ended, Piece, Reading, Waiting
from chatsite.chat.pace import pace_of_site
from chatsite.chat.reply import begun
from chatsite.chat.tail import AnswerEvent
from chatsite.chat.turn import Caller, Turn
from chatsite.grpc_door import chat_pb2 as pb
from chatsite.grpc_door import forms
from chatsite.grpc_door.errors import failed_of
from chatsite.v1 import schema
from chatsite.v1.catalog import served_chat_model
from chatsite.v1.errors import ApiError, failure_of, invalid, stopped, told_of
from chatsite.v1.tools import Reader, chat_offer
from chatsite.v1.turns import chat_turns

MAX_AT_ONCE = 32
# A client that does not read stops its answers here; the engine's event log keeps the rest.
MAX_AHEAD = 64


class Talk:
    """Events of all answers in the order of their making. Closing the iterator ends what is being made."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._said: asyncio.Queue[pb.ServerMessage | None] = asyncio.Queue(MAX_AHEAD)
        self._answers: dict[str, asyncio.Task[None]] = {}
        self._is_heard = True

    async def events(self, messages: AsyncIterator[pb.ClientMessage]) -> AsyncGenerator[pb.ServerMessage]:
        hearing = asyncio.create_task(self._hear(messages))
        try:
            while (message := await self._said.get()) is not None:
                yield message
            hearing.result()
        finally:
            self._is_heard = False
            tasks = [hearing, *self._answers.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _hear(self, messages: AsyncIterator[pb.ClientMessage]) -> None:
        """Until the client has said its last word and all answers have ended, whatever goes wrong."""
        try:
            async for message in messages:
                await self._obey(message)
            while self._answers:
                await asyncio.wait(set(self._answers.values()))
        finally:
            await self._put(None)

    async def _obey(self, message: pb.ClientMessage) -> None:
        name, task = message.request_id, self._answers.get(message.request_id)
        if message.WhichOneof("what") == "stop":
            if task is not None:
                task.cancel()
        elif refusal := self._refusal(message):
            await self._say(name, failed=failed_of(refusal))
        else:
            task = asyncio.create_task(self._answer(name, message.ask))
            self._answers[name] = task
            task.add_done_callback(lambda _: self._answers.pop(name))

    def _refusal(self, message: pb.ClientMessage) -> ApiError | None:
        if message.WhichOneof("what") != "ask":
            return invalid(None, "A message is a question or a stop.")
        if not message.request_id:
            return invalid("request_id", "A question needs a name.", "missing_required_parameter")
        if message.request_id in self._answers:
            return invalid("request_id", "This name is another question's, which is being answered.")
        if len(self._answers) >= MAX_AT_ONCE:
            return ApiError(
                429, "too_many_followed", f"At most {MAX_AT_ONCE} questions are answered at once."
            )
        return None

    async def _answer(self, name: str, ask: pb.Ask) -> None:
        """Says everything about one question, to its end."""
        try:
            asked = schema.parse_chat(forms.body_of(ask))
            if asked.logprobs:
                raise invalid(
                    "logprobs", "There are no log-probabilities at this door.", "unsupported_parameter"
                )
            info = await served_chat_model(asked.model or "")
            offer = chat_offer(asked, info)
            turns = await admitted(chat_turns(asked, "", self._caller, info, offer))
            await self._tell_all(name, turns, [offer.reader() for _ in turns])
        except asyncio.CancelledError:
            await self._say(name, failed=failed_of(stopped()))
            raise
        except Exception as error:
            await self._say(name, failed=failed_of(told_of(error, "the gRPC door")))

    async def _tell_all(self, name: str, turns: Sequence[Turn], readers: Sequence[Reader]) -> None:
        """Until all answers are complete. Raises what ends one of them."""
        tail, num_ended = begun(turns, pace_of_site()), 0
        try:
            while num_ended < len(turns) and (event := await tail.next()) is not None:
                await self._tell(name, event, readers[event[0]])
                num_ended += isinstance(event[1], Ended)
        finally:
            await tail.close()

    async def _tell(self, name: str, event: AnswerEvent, reader: Reader) -> None:
        """Raises ApiError for every end but that of a complete answer."""
        match event:
            case index, Accepted() as accepted:
                await self._say(name, index, accepted=forms.accepted_of(accepted))
            case index, (Waiting() | Reading()) as progress:
                await self._say(name, index, **forms.progress_of(progress))
            case index, Piece(text=text):
                for part in reader.read(text):
                    await self._say(name, index, **forms.part_of(part))
            case index, Ended() as ended:
                if failure := failure_of(ended):
                    raise failure
                for part in reader.end():
                    await self._say(name, index, **forms.part_of(part))
                await self._say(name, index, done=forms.done_of(ended, reader.num_calls))

    async def _say(self, name: str, index: int = 0, **event: Any) -> None:
        await self._put(pb.ServerMessage(request_id=name, index=index, **event))

    async def _put(self, message: pb.ServerMessage | None) -> None:
        """Waits for room; but not once nobody makes any."""
        if self._is_heard:
            await self._said.put(message)
