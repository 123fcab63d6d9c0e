"""The page's JSON API: conversations, messages, generations. A door: parse, call one function, format."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router, Status

from chatsite.chat import erasure, feedback, frames, library
from chatsite.chat.coalesce import coalesce
from chatsite.chat.ending import stop
from chatsite.chat.following import Followed, followed, load
from chatsite.chat.framing import Framer
from chatsite.chat.live import HandedOver
from chatsite.chat.models import LIVE_STATES, Conversation, Message
from chatsite.chat.running import running
from chatsite.chat.schemas import (
    CancelOut,
    ConversationChange,
    ConversationItem,
    ConversationOut,
    ConversationPage,
    FeedbackIn,
    GenerationOut,
    SnapshotOut,
)
from chatsite.chat.turn import Caller
from chatsite.db import run_in_db
from chatsite.errors import NotFound
from chatsite.sse import HEADERS, KEEP_ALIVE_S, Pump

router = Router(tags=["chat"])


@router.get("/conversations", response=ConversationPage)
async def list_conversations(
    request: HttpRequest, q: str = "", cursor: str = "", archived: bool = False
) -> dict[str, Any]:
    """A page of conversations, pinned first, then the latest; `q` searches titles and texts."""
    user_id = _caller(request).user_id
    items, following = await run_in_db(library.conversations, user_id, q, cursor, is_archived=archived)
    return {"items": items, "next": following}


@router.get("/conversations/{uuid:conversation}", response=ConversationOut)
async def get_conversation(request: HttpRequest, conversation: UUID) -> dict[str, Any]:
    """A conversation with the messages of all branches."""
    row, messages = await run_in_db(
        library.conversation_with_messages, _caller(request).user_id, conversation
    )
    return _shown(row, messages)


@router.patch("/conversations/{uuid:conversation}", response=ConversationItem)
async def change_conversation(
    request: HttpRequest, conversation: UUID, body: ConversationChange
) -> Conversation:
    """Changes title, pin, archive, system prompt, parameters or the active branch."""
    changes = {name: value for name, value in body.dict(exclude_unset=True).items() if value is not None}
    if body.parameters is not None:
        changes["parameters"] = body.parameters.dict(exclude_none=True)
    return await run_in_db(library.change, _caller(request).user_id, conversation, changes)


@router.delete("/conversations/{uuid:conversation}", response={204: None})
async def erase_conversation(request: HttpRequest, conversation: UUID) -> Status[None]:
    """Removes a conversation from every store."""
    await erasure.erase(_caller(request), conversation)
    return Status(204, None)


@router.get("/messages/{uuid:message}", response=SnapshotOut)
async def get_message(request: HttpRequest, message: UUID, after: int = 0) -> dict[str, Any]:
    """A message as it is now, for clients that can only poll."""
    return _snapshot(await run_in_db(_own_message, _caller(request).user_id, message), after)


@router.put("/messages/{uuid:message}/feedback", response={204: None})
async def rate_message(request: HttpRequest, message: UUID, body: FeedbackIn) -> Status[None]:
    """A thumb up or down on an answer; the latest one counts."""
    await feedback.rate(_caller(request), message, body.verdict, body.reason)
    return Status(204, None)


@router.get("/generations/{uuid:generation}", response=GenerationOut)
async def get_generation(request: HttpRequest, generation: UUID) -> dict[str, Any]:
    """How an answer was made, as far as it is known."""
    return library.figures(await run_in_db(load, _caller(request).user_id, generation))


@router.post("/generations/{uuid:generation}/cancel", response=CancelOut)
async def cancel_generation(request: HttpRequest, generation: UUID) -> dict[str, Any]:
    """Ends an answer at once; harmless after its end."""
    user_id = _caller(request).user_id
    await stop((await run_in_db(load, user_id, generation)).pk)
    row = await run_in_db(load, user_id, generation)
    return {"id": row.pk, "state": row.state}


@router.get("/generations/{uuid:generation}/events")
async def generation_events(request: HttpRequest, generation: UUID, after: int = 0) -> StreamingHttpResponse:
    """Follows an answer as server-sent events: a snapshot, then the same frames as on the socket, then `done`."""
    user_id = _caller(request).user_id
    await run_in_db(load, user_id, generation)  # an unknown one is a 404, not a stream
    return StreamingHttpResponse(_events(user_id, generation), headers=HEADERS)


async def _events(user_id: int, generation: UUID) -> AsyncGenerator[bytes, None]:
    async with followed(user_id, generation) as found:
        snapshot = found.live.snapshot()
        framer = Framer(found.live)
        yield _line(framer.snapshot(found, snapshot))
        async with aclosing(_tail(found, framer, snapshot.num_pieces)) as lines:
            async for line in lines:
                yield line


async def _tail(found: Followed, framer: Framer, num_seen: int) -> AsyncGenerator[bytes, None]:
    config = settings.CONFIG
    pump = Pump(coalesce(found.live.follow(num_seen), config.coalesce_tokens, config.coalesce_ms / 1000))
    try:
        while not framer.has_ended:
            event = await pump.next(KEEP_ALIVE_S)
            frame = event and framer.frame(event)
            yield _line(frame) if frame else b": keep-alive\n\n"
    except HandedOver:
        return  # the client asks again and is served by the process that has it now
    finally:
        await pump.close()


def _line(frame: frames.FromServer) -> bytes:
    return f"data: {frames.encode(frame)}\n\n".encode()


def _caller(request: HttpRequest) -> Caller:
    caller = request.auth  # type: ignore[attr-defined]
    assert isinstance(caller, Caller)
    return caller


def _shown(row: Conversation, messages: list[Message]) -> dict[str, Any]:
    fields = ("id", "title", "system_prompt", "parameters", "is_pinned", "is_archived", "is_temporary")
    shown = {name: getattr(row, name) for name in fields}
    return shown | {
        "active_leaf": row.active_leaf_id,
        "messages": [_message(message) for message in messages],
    }


def _message(message: Message) -> dict[str, Any]:
    generation = getattr(message, "generation", None)
    return {
        "id": message.pk,
        "parent": message.parent_id,
        "role": message.role,
        "text": message.text,
        "state": message.state,
        "created_at": message.created_at,
        "feedback": message.verdict,  # type: ignore[attr-defined]
        "generation": library.figures(generation) if generation is not None else None,
    }


def _own_message(user_id: int, message: UUID) -> Message:
    rows = Message.objects.select_related("generation")
    row = rows.filter(pk=message, conversation__owner=user_id).first()
    if row is None:
        raise NotFound("there is no such message.")
    return row


def _snapshot(message: Message, after: int) -> dict[str, Any]:
    """From the live text where this process has it, else from the last checkpoint."""
    generation = getattr(message, "generation", None)
    live = running().get(generation.pk) if generation is not None and message.state in LIVE_STATES else None
    if live is not None:
        text, seq, state = live.text, live.seq, live.state.value
    else:
        text, seq, state = message.text, generation.stored_seq if generation is not None else 0, message.state
    is_news = seq > after or state not in LIVE_STATES
    return {
        "id": message.pk,
        "generation": generation.pk if generation is not None else None,
        "state": state,
        "seq": seq,
        "text": text if is_news else None,
    }
