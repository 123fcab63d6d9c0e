"""The operations of `/v1`: what each takes, answers and needs, with an example of both.

Knows paths and media types; the shapes are `openapi.requests` and `openapi.answers`, the errors `openapi.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatsite.openapi import refs
from chatsite.openapi import v1_examples as examples
from chatsite.openapi.errors import error_responses
from chatsite.v1.limits import X_WARNING

KEY = "key"
JSON = "application/json"
EVENTS = "text/event-stream"
DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `events` names the schema of the objects of its stream."""

    id: str
    method: str
    path: str
    summary: str
    scopes: Sequence[str]
    answer: str
    example: dict[str, Any]
    body: str = ""
    asked: dict[str, Any] | None = None
    events: str = ""
    event: dict[str, str] | None = None
    more_errors: tuple[int, ...] = ()


OPERATIONS = (
    Operation(
        "list_models", "get", "/v1/models", "The models that are served", ("chat", "embeddings"),
        "ModelList", examples.MODELS,
    ),
    Operation(
        "retrieve_model", "get", "/v1/models/{name}", "One of them", ("chat", "embeddings"),
        "Model", examples.MODEL,
    ),
    Operation(
        "create_chat_completion", "post", "/v1/chat/completions", "An answer to a conversation, whole or streamed",
        ("chat",), "ChatCompletion", examples.CHAT_ANSWER, "ChatRequest", examples.CHAT,
        "ChatCompletionChunk", examples.CHAT_EVENT, (404, 504),
    ),
    Operation(
        "create_completion", "post", "/v1/completions", "Raw prompts go on, without the chat template",
        ("chat",), "Completion", examples.COMPLETION_ANSWER, "CompletionRequest", examples.COMPLETION,
        "Completion", examples.COMPLETION_EVENT, (404, 504),
    ),
    Operation(
        "create_response", "post", "/v1/responses", "A response, whole or as typed events; nothing is stored",
        ("chat",), "Response", examples.RESPONSE_ANSWER, "ResponsesRequest", examples.RESPONSE,
        "ResponseEvent", examples.RESPONSE_EVENT, (404, 504),
    ),
    Operation(
        "create_embeddings", "post", "/v1/embeddings", "Vectors of texts", ("embeddings",),
        "EmbeddingList", examples.EMBEDDING_ANSWER, "EmbeddingsRequest", examples.EMBEDDING, more_errors=(404,),
    ),
)  # fmt: skip
CACHE_CONTROL = {
    "in": "header",
    "name": "Cache-Control",
    "description": "`no-cache` asks the model, `no-store` keeps nothing, `only-if-cached` never asks the model.",
    "schema": {"type": "string"},
    "example": "no-cache",
}
QUOTA_HEADERS = {
    f"x-ratelimit-{what}-{kind}": {
        "description": f"Of the tightest quota of {kind}, where one is in force: {means}",
        "schema": {"type": "string"},
    }
    for kind in ("requests", "tokens")
    for what, means in (
        ("limit", "how many a window has."),
        ("remaining", "how many are left."),
        ("reset", "in how long the window ends, as `6m0s`."),
    )
} | {
    X_WARNING: {
        "description": "From 80 % of a quota on: how much of it is used, and when it resets.",
        "schema": {"type": "string"},
    }
}
ANSWER_HEADERS = QUOTA_HEADERS | {
    "X-Cache": {
        "description": "What the semantic cache said.",
        "schema": {
            "enum": ["hit-exact", "hit-semantic", "stale-exact", "stale-semantic", "miss", "bypass"],
            "type": "string",
        },
    },
    "Age": {"description": "Seconds since a stored answer was made.", "schema": {"type": "string"}},
    "X-Ignored-Fields": {
        "description": "Fields that mean nothing here, comma separated.",
        "schema": {"type": "string"},
    },
    "X-Trimmed-Messages": {
        "description": "Messages that did not fit into the model's window.",
        "schema": {"type": "string"},
    },
}


def v1_paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return paths


def _described(operation: Operation) -> dict[str, Any]:
    has_path = "{" in operation.path
    described: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": ["OpenAI-compatible"],
        "security": [{KEY: [scope]} for scope in operation.scopes],
        "parameters": _parameters(operation),
        "responses": {"200": _answer(operation)}
        | error_responses(has_body=bool(operation.body), has_path=has_path, more=operation.more_errors),
    }
    if operation.body:
        described["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": refs.schema(operation.body), "example": operation.asked}},
        }
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    if "{name}" in operation.path:
        name = {"in": "path", "name": "name", "required": True, "schema": {"type": "string", "minLength": 1}}
        return [name | {"example": examples.MODEL["id"]}]
    return [CACHE_CONTROL] if operation.events else []


def _answer(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {JSON: {"schema": refs.schema(operation.answer), "example": operation.example}}
    if not operation.events:
        headers = {"headers": QUOTA_HEADERS} if operation.body else {}
        return {"description": "OK", "content": content} | headers
    content[EVENTS] = {"schema": _event(operation.events), "example": operation.event}
    return {"description": "OK", "headers": ANSWER_HEADERS, "content": content}


def _event(held: str) -> dict[str, Any]:
    """OpenAPI 3.1 has no word for the items of a stream: this is one event, as 3.2 says with `itemSchema`."""
    one = {"type": "string", "contentMediaType": JSON, "contentSchema": refs.schema(held)}
    # A response's last event has a type of its own and needs no mark.
    is_marked = held != "ResponseEvent"
    return {
        "type": "object",
        "title": "ServerSentEvent",
        "description": "One of the events of the stream. `data` holds one object"
        + (", or at last `[DONE]`." if is_marked else "."),
        "properties": {
            "event": {"type": "string"},
            "data": {"anyOf": [{"const": DONE}, one]} if is_marked else one,
        },
        "required": ["data"],
    }
