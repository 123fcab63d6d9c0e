"""`POST /v1/completions`: raw prompts, without a chat template, through the same flow as every question."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chatsite.chat.turn import Caller
from chatsite.json_body import read_json
from chatsite.v1 import schema
from chatsite.v1.catalog import served_chat_model
from chatsite.v1.completion_form import CompletionForm
from chatsite.v1.endpoint import endpoint
from chatsite.v1.formats import fingerprint_of
from chatsite.v1.respond import respond
from chatsite.v1.turns import completion_turns


@endpoint("POST", scopes=("chat",))
async def completions(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    body = read_json(request)
    asked = schema.parse_completion(body)
    info = await served_chat_model(asked.model or "")
    turns = completion_turns(asked, request.headers.get("Cache-Control", ""), caller, info)
    options = asked.stream_options
    form = CompletionForm(
        id=f"cmpl-{turns[0].generation.hex}",
        model=info.model,
        fingerprint=fingerprint_of(info),
        num_choices=asked.n or 1,
        has_logprobs=asked.logprobs is not None,
        includes_usage=bool(options and options.include_usage),
    )
    ignored = schema.ignored_fields(body, schema.CompletionRequest)
    return await respond(turns, form, streams=bool(asked.stream), ignored=ignored)
