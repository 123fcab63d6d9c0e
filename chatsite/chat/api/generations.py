"""Answers in the making: how far they are, their text as it comes, their end. A door to `chatsite.chat.following`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Field, Header, Router

from chatsite.accounts.auth import caller_of
from chatsite.accounts.grants import Grant, watch
from chatsite.chat import frames, library
from chatsite.chat.ending import stop
from chatsite.chat.following import Followed, followed, load
from chatsite.chat.framing import Framer
from chatsite.chat.live import HandedOver
from chatsite.chat.pace import pace_of_site
from chatsite.chat.schemas.messages import CancelOut, GenerationOut
from chatsite.chat.tail import Tail
from chatsite.db import run_in_db
from chatsite.errors import AccessEnded
from chatsite.sse import HEADERS, KEEP_ALIVE_S

router = Router(tags=["generations"])

Seq = Annotated[int, Field(ge=0, lt=2**63, description="The `seq` up to which you have the text.")]
EVENTS = {
    "responses": {
        200: {
            "description": "Frames as on the WebSocket, one JSON object per event, until `done`.",
            "content": {
                "text/event-stream": {
                    # One event: OpenAPI 3.1 has no word for the items of a stream.
                    "schema": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string"},
                            "data": {"type": "string", "contentMediaType": "application/json"},
                        },
                        "required": ["data"],
                    },
                    "example": {
                        "id": "3",
                        "data": '{"type":"delta","generation":"6f2f3c5e-3f0d-4f0e-9a53-9d9a3f4f4b1e",'
                        '"seq":3,"offset":10,"text":" longest"}',
                    },
                }
            },
        }
    }
}


@router.get("/generations/{uuid:generation}", response={200: GenerationOut})
async def get_generation(request: HttpRequest, generation: UUID) -> dict[str, Any]:
    """How an answer was made, as far as it is known."""
    return library.figures(await run_in_db(load, caller_of(request).user_id, generation))


@router.post("/generations/{uuid:generation}/cancel", response={200: CancelOut})
async def cancel_generation(request: HttpRequest, generation: UUID) -> dict[str, Any]:
    """Ends an answer at once; harmless after its end. What was written so far is kept."""
    user_id = caller_of(request).user_id
    await stop((await run_in_db(load, user_id, generation)).pk)
    row = await run_in_db(load, user_id, generation)
    return {"id": row.pk, "state": row.state}


@router.get(
    "/generations/{uuid:generation}/events",
    openapi_extra=EVENTS,
    response={200: None},
)
async def generation_events(
    request: HttpRequest,
    generation: UUID,
    after: Seq = 0,
    last_event_id: Annotated[str, Header(alias="Last-Event-ID")] = "",
) -> StreamingHttpResponse:
    """Follows an answer as server-sent events.

    With `after`, or the header `Last-Event-ID` of a browser that connects again, only what comes behind is sent, as
    `delta` frames that fit exactly. Without, or where the text cannot be cut there any more, the first frame is a
    `snapshot` of the whole text so far, which takes the place of what you have. `done` is the last one, and its
    `length` that of the whole text in UTF-16 units.
    """
    user_id = caller_of(request).user_id
    await run_in_db(load, user_id, generation)  # an unknown one is a 404, not a stream
    grant: Grant = request.grant  # type: ignore[attr-defined]
    return StreamingHttpResponse(_events(grant, generation, _number(last_event_id) or after), headers=HEADERS)


def _number(last_event_id: str) -> int:
    """0 for what is no number of ours: then everything is sent."""
    is_ours = last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 20
    return int(last_event_id) if is_ours else 0


async def _events(grant: Grant, generation: UUID, after: int) -> AsyncGenerator[bytes, None]:
    # A word at once: a reader that gets none knows that something on the way collects what we write.
    yield b": open\n\n"
    async with followed(grant.user_id, generation) as found:
        held = found.live.cut(after)
        framer = Framer(found.live, held)
        if held is None:
            held = found.live.snapshot()
            yield _line(framer.snapshot(found, held), held.seq)
        async with aclosing(_tail(grant, found, framer, held.num_pieces)) as lines:
            async for line in lines:
                yield line


async def _tail(grant: Grant, found: Followed, framer: Framer, num_seen: int) -> AsyncGenerator[bytes, None]:
    tail = Tail(pace_of_site())
    tail.add(found.live, num_seen)
    try:
        with watch.watching(grant, lambda: tail.break_off(AccessEnded())):
            while not framer.has_ended:
                coming = await tail.next(KEEP_ALIVE_S)
                frame = coming and framer.frame(coming[1])
                yield _line(frame, getattr(frame, "seq", None)) if frame else b": keep-alive\n\n"
    except (HandedOver, AccessEnded):
        return  # the client asks again: it is served by the process that has it now, or told that it is signed out
    finally:
        await tail.close()


def _line(frame: frames.FromServer, seq: int | None) -> bytes:
    number = "" if seq is None else f"id: {seq}\n"
    return f"{number}data: {frames.encode(frame)}\n\n".encode()
