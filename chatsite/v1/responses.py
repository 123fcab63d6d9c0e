"""`POST /v1/responses`, stateless: the whole history comes with the request, and nothing is kept for the next one."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chatsite.chat.turn import Caller
from chatsite.json_body import read_json
from chatsite.v1 import schema
from chatsite.v1.catalog import served_chat_model
from chatsite.v1.endpoint import endpoint
from chatsite.v1.respond import respond
from chatsite.v1.response_form import ResponseForm
from chatsite.v1.response_format import RESPONSES_FIELD, naming_format
from chatsite.v1.tools import response_offer
from chatsite.v1.turns import response_turn


@endpoint("POST", scopes=("chat",))
async def responses(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    body = read_json(request)
    asked = schema.parse_response(body)
    info = await served_chat_model(asked.model or "")
    offer = response_offer(asked, info)
    turn = response_turn(asked, request.headers.get("Cache-Control", ""), caller, info, offer)
    form = ResponseForm(turn.generation.hex, info, asked, offer)
    ignored = schema.ignored_fields(body, schema.ResponsesRequest)
    with naming_format(RESPONSES_FIELD if asked.text and asked.text.format else "tools"):
        return await respond([turn], form, streams=bool(asked.stream), ignored=ignored)
