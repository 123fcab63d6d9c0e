"""`POST /v1/chat/completions`: parse, start the one flow, say in which form the answers are read."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chatsite.chat.turn import Caller
from chatsite.json_body import read_json
from chatsite.v1 import schema
from chatsite.v1.catalog import served_chat_model
from chatsite.v1.chat_form import ChatForm
from chatsite.v1.endpoint import endpoint
from chatsite.v1.formats import fingerprint_of
from chatsite.v1.respond import respond
from chatsite.v1.response_format import CHAT_FIELD, naming_format
from chatsite.v1.tools import chat_offer
from chatsite.v1.turns import chat_turns


@endpoint("POST", scopes=("chat",))
async def chat_completions(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    body = read_json(request)
    asked = schema.parse_chat(body)
    info = await served_chat_model(asked.model or "")
    offer = chat_offer(asked, info)
    turns = chat_turns(asked, request.headers.get("Cache-Control", ""), caller, info, offer)
    options = asked.stream_options
    form = ChatForm(
        id=f"chatcmpl-{turns[0].generation.hex}",
        model=info.model,
        fingerprint=fingerprint_of(info),
        num_choices=len(turns),
        has_logprobs=bool(asked.logprobs),
        includes_usage=bool(options and options.include_usage),
        offer=offer,
    )
    ignored = schema.ignored_fields(body, schema.ChatRequest)
    with naming_format(CHAT_FIELD if asked.response_format else "tools"):
        return await respond(turns, form, streams=bool(asked.stream), ignored=ignored)
