"""`POST /v1/chat/completions`: parse, start the one flow, format what it says."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from chatsite.chat.coalesce import coalesce
from chatsite.chat.events import Accepted, Ended, Piece
from chatsite.chat.reply import reply
from chatsite.chat.turn import Caller, Turn
from chatsite.json_body import read_json
from chatsite.sse import HEADERS, Pump
from chatsite.v1 import formats, schema
from chatsite.v1.catalog import served_chat_model
from chatsite.v1.endpoint import endpoint
from chatsite.v1.errors import ApiError
from chatsite.v1.formats import Completion
from chatsite.v1.stream import read_head, stream
from chatsite.v1.turns import turn_of

IGNORED_FIELDS = "X-Ignored-Fields"


@endpoint("POST", scopes=("chat",))
async def chat_completions(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    body = read_json(request)
    asked = schema.parse_chat(body)
    info = await served_chat_model(asked.model or "")
    turn = turn_of(asked, request.headers.get("Cache-Control", ""), caller, info)
    completion = Completion(id=f"chatcmpl-{turn.generation.hex}", model=info.model)
    if asked.stream:
        options = asked.stream_options
        response = await _streamed(turn, completion, includes_usage=bool(options and options.include_usage))
    else:
        response = await _whole(turn, completion)
    if ignored := schema.ignored_fields(body):
        response[IGNORED_FIELDS] = ignored
    return response


async def _whole(turn: Turn, completion: Completion) -> HttpResponseBase:
    text: list[str] = []
    num_tokens = 0
    accepted: Accepted | None = None
    # When the client goes away Django cancels this coroutine, and leaving the block ends the generation.
    async with aclosing(reply(turn)) as events:
        async for event in events:
            match event:
                case Accepted():
                    accepted = event
                case Piece():
                    text.append(event.text)
                    num_tokens += event.num_tokens
                case Ended():
                    if failure := formats.failure_of(event):
                        raise failure
                    usage = formats.usage_of(event, num_tokens)
                    whole: dict[str, Any] = completion.whole("".join(text), event, usage)
                    return JsonResponse(whole, headers=formats.answer_headers(accepted))
    raise ApiError(500, "internal_error", "The answer ended without saying how.")


async def _streamed(turn: Turn, completion: Completion, *, includes_usage: bool) -> HttpResponseBase:
    config = settings.CONFIG
    pump = Pump(coalesce(reply(turn), config.coalesce_tokens, config.coalesce_ms / 1000))
    try:
        accepted = await read_head(pump)
    except BaseException:
        await pump.close()
        raise
    return StreamingHttpResponse(
        stream(completion, pump, includes_usage=includes_usage),
        headers=HEADERS | formats.answer_headers(accepted),
    )
