"""The form that an answer must have, in OpenAI's two ways of asking for it.

Knows names and fields. Which schemas an answer can be held to the engine knows; its refusal gets the field's name here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chatsite.errors import ReplyRefused
from chatsite.v1.errors import invalid
from chatsite.v1.schema import ChatRequest, ResponseFormat, ResponsesRequest, TextFormat
from inference.errors import InvalidGrammar
from inference.types import JSON_OBJECT, JSON_SCHEMA, EngineInfo, Grammar

CHAT_FIELD, RESPONSES_FIELD = "response_format", "text.format"
TEXT = "text"
TYPES = (TEXT, JSON_OBJECT, JSON_SCHEMA)
SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def chat_grammar(request: ChatRequest, info: EngineInfo) -> Grammar | None:
    """What answers of a chat completion are held to; None for text. Raises ApiError that names the field."""
    asked = request.response_format
    if asked is None or not _is_json(asked, CHAT_FIELD, info):
        return None
    field = f"{CHAT_FIELD}.json_schema"
    if asked.type == JSON_SCHEMA and asked.json_schema is None:
        raise invalid(field, "You must give 'json_schema'.", "missing_required_parameter")
    given = asked.json_schema if asked.type == JSON_SCHEMA else None
    return _grammar(given.name, given.schema, field) if given else Grammar(JSON_OBJECT)


def response_grammar(request: ResponsesRequest, info: EngineInfo) -> Grammar | None:
    """The same of a response."""
    asked = request.text.format if request.text else None
    if asked is None or not _is_json(asked, RESPONSES_FIELD, info):
        return None
    if asked.type == JSON_OBJECT:
        return Grammar(JSON_OBJECT)
    return _grammar(asked.name, asked.schema, RESPONSES_FIELD)


def format_told(request: ResponsesRequest) -> dict[str, Any]:
    """The form as a response tells it."""
    asked = request.text.format if request.text else None
    if asked is None or asked.type != JSON_SCHEMA:
        return {"type": asked.type if asked else TEXT}
    told = {"description": asked.description, "schema": asked.schema or {}, "strict": bool(asked.strict)}
    return {"type": JSON_SCHEMA, "name": asked.name} | told


@contextmanager
def naming_format(field: str) -> Iterator[None]:
    """The engine's refusal of a grammar names `field`, which asked for it. Raises ApiError."""
    try:
        yield
    except ReplyRefused as refusal:
        if refusal.code != InvalidGrammar.code:
            raise
        raise invalid(field, refusal.message, refusal.code) from refusal


def _is_json(asked: ResponseFormat | TextFormat, field: str, info: EngineInfo) -> bool:
    if asked.type not in TYPES:
        raise invalid(f"{field}.type", f"The format must be one of: {', '.join(TYPES)}.", "invalid_value")
    if asked.type != TEXT and not info.has_grammar:
        raise invalid(field, "This engine gives text only.", "unsupported_parameter")
    return asked.type != TEXT


def _grammar(name: str | None, schema: dict[str, Any] | None, field: str) -> Grammar:
    """Without a schema any object will do. The order of the schema's properties is that of the answer's."""
    if name is None:
        raise invalid(f"{field}.name", "A schema must have a name.", "missing_required_parameter")
    if not SCHEMA_NAME.fullmatch(name):
        raise invalid(f"{field}.name", "A schema's name has 1 to 64 letters, digits, '_' and '-'.")
    if schema is None:
        return Grammar(JSON_OBJECT)
    return Grammar(JSON_SCHEMA, json.dumps(schema, ensure_ascii=False, separators=(",", ":")))
