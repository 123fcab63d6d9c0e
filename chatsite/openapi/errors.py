"""The error responses of an operation: their object, their headers, and an example for every code.

Knows which statuses an operation can answer with; the codes are `openapi.codes`'s.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from chatsite.openapi import refs
from chatsite.openapi.codes import CODES, codes_of
from chatsite.v1.errors import ApiError, body_of

NAMES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    413: "ContentTooLarge",
    422: "Unprocessable",
    429: "TooManyRequests",
    500: "ServerError",
    503: "Unavailable",
    504: "NotCached",
}
MEANINGS = {
    400: "Something in the request is wrong; `param` names it where one field is to blame.",
    401: "No key and no session, or one that is unknown, expired or revoked.",
    403: "The key's scope or the session does not allow this.",
    404: "Unknown, or somebody else's: the two look the same.",
    405: "This URL does not take that method; `Allow` says which.",
    409: "Not in the state that this needs.",
    413: "The body or a text in it is too large.",
    422: "Cannot be taken as it is.",
    429: "A limit of the caller is reached; `Retry-After` says when to come back.",
    500: "A mistake of the server.",
    503: "Busy or away for a moment; `Retry-After` says when to come back.",
    504: "`only-if-cached` was asked for, and the cache has no answer.",
}
# Anything may meet these.
EVERYWHERE = (400, 401, 403, 405, 429, 500, 503)
RETRY_AFTER = {
    "Retry-After": {"description": "Seconds until trying again helps.", "schema": {"type": "string"}}
}
ALLOW = {"Allow": {"description": "The methods that this URL takes.", "schema": {"type": "string"}}}


def error_responses(*, has_body: bool, has_path: bool, more: Collection[int] = ()) -> dict[str, Any]:
    """References to the responses that such an operation may end with."""
    statuses = {*EVERYWHERE, *more}
    statuses |= {413, 422} if has_body else set()
    # What is named may be unknown, in the path or in the body, and what is there may not be in the right state.
    statuses |= {404, 409} if has_path or has_body else set()
    return {str(status): refs.response(NAMES[status]) for status in sorted(statuses)}


def components() -> dict[str, Any]:
    """The shared responses, by name."""
    return {name: _response(status) for status, name in NAMES.items()}


def error_schema() -> dict[str, Any]:
    nullable = {"type": ["string", "null"]}
    return {
        "type": "object",
        "title": "Error",
        "description": "Every error, everywhere under `/v1` and `/api`.",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": {
                    "message": {"type": "string", "description": "For people."},
                    "type": {"type": "string", "description": "The kind, as OpenAI's clients know it."},
                    "param": nullable | {"description": "The field that is wrong: `messages[0].content`."},
                    "code": {
                        "type": "string",
                        "description": "Stable; for programs. New ones may come.",
                        "examples": list(CODES),
                    },
                },
            }
        },
    }


def error_example(status: int, code: str) -> dict[str, Any]:
    return dict(body_of(ApiError(status, code, MEANINGS.get(status, "What went wrong, in words."))))


def _response(status: int) -> dict[str, Any]:
    examples = {code: {"value": error_example(status, code)} for code in codes_of(status)}
    content: dict[str, Any] = {"schema": refs.schema("Error")} | ({"examples": examples} if examples else {})
    response = {"description": MEANINGS[status], "content": {"application/json": content}}
    headers = {429: RETRY_AFTER, 503: RETRY_AFTER, 405: ALLOW}.get(status)
    return response | ({"headers": headers} if headers else {})
