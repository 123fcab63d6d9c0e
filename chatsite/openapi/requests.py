"""The bodies that `/v1` takes, as JSON schemas: the structs it decodes, with the ranges it checks afterwards.

Knows which check belongs to which field; the fields and their types are read off the structs, and the numbers off the
modules that check. Fields without a type are those that are refused, and are left out.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from chatsite.openapi import refs, tools
from chatsite.v1 import embeddings, prompts, response_format, sampling, schema, turns

REQUESTS = (
    schema.ChatRequest,
    schema.CompletionRequest,
    schema.ResponsesRequest,
    embeddings.EmbeddingsRequest,
)
TEXT = {"type": "string", "minLength": 1}
MODEL = {"model": TEXT | {"description": "Its name, as `GET /v1/models` tells it."}}
LOGPROBS = {"minimum": sampling.TOP_LOGPROBS.low, "maximum": sampling.TOP_LOGPROBS.high}
STOP = {"type": "string", "maxLength": sampling.MAX_STOP_CHARS}
AT_LEAST_ONE = {"minimum": 1}
# `top_logprobs` says how many to show beside each token, so there must be tokens shown.
TOP_NEEDS_LOGPROBS = {
    "if": {"properties": {"top_logprobs": {"type": "integer"}}, "required": ["top_logprobs"]},
    "then": {"properties": {"logprobs": {"const": True}}, "required": ["logprobs"]},
}


def _texts(most: int) -> dict[str, Any]:
    return {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1, "maxItems": most}]}


def _range(allowed: sampling.Range) -> dict[str, Any]:
    return {"exclusiveMinimum" if allowed.excludes_low else "minimum": allowed.low, "maximum": allowed.high}


# Of a field wherever it is found: what is added to its type, null aside.
ANYWHERE: dict[str, dict[str, Any]] = {name: _range(allowed) for name, allowed in sampling.RANGES.items()} | {
    "max_tokens": AT_LEAST_ONE,
    "max_completion_tokens": AT_LEAST_ONE,
    "max_output_tokens": AT_LEAST_ONE,
    "top_logprobs": LOGPROBS,
    "priority": {"minimum": 0, "maximum": schema.MAX_PRIORITY},
    "service_tier": {"enum": list(schema.SERVICE_TIERS)},
    "truncation": {"enum": ["auto", "disabled"]},
    "n": {"minimum": 1, "maximum": turns.MAX_ANSWERS},
    "logit_bias": {
        "propertyNames": {"pattern": f"^[0-9]{{1,{sampling.MAX_ID_DIGITS}}}$"},
        "additionalProperties": {
            "type": "number",
            "minimum": -sampling.MAX_BIAS,
            "maximum": sampling.MAX_BIAS,
        },
    },
}
CONTENT: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": refs.schema("Part"), "minItems": 1},
    ]
}
FORMAT = {
    "enum": list(response_format.TYPES),
    "description": "`json_schema` needs a name and takes a schema.",
}
SCHEMA_NAME = {"type": "string", "pattern": f"^{response_format.SCHEMA_NAME.pattern}$"}
MESSAGE: dict[str, dict[str, Any]] = {
    "role": {"enum": [role for role in prompts.ROLES if role != "tool"]},
    "content": CONTENT,
    # A message that calls functions is of another kind.
    "tool_calls": {"anyOf": [{"type": "null"}, {"type": "array", "maxItems": 0}]},
}
# Of a field of one struct: its whole schema, in place of the type that is checked later.
INSTEAD: dict[str, dict[str, dict[str, Any]]] = {
    "ChatRequest": MODEL | tools.CHAT | {"messages": refs.schema("Messages")},
    "CompletionRequest": MODEL | {
        "prompt": _texts(prompts.MAX_PROMPTS),
        "logprobs": {"anyOf": [{"type": "integer"} | LOGPROBS, {"type": "null"}]},
    },
    "ResponsesRequest": MODEL | tools.RESPONSES | {"input": {"anyOf": [TEXT, refs.schema("Items")]}},
    "EmbeddingsRequest": MODEL | {
        "input": _texts(embeddings.MAX_TEXTS),
        "encoding_format": {"enum": ["float", "base64", None]},
        "dimensions": {"type": ["integer", "null"], "description": "The model's own number; it has no other."},
    },
    "ResponseFormat": {"type": FORMAT},
    "TextFormat": {"type": FORMAT},
    "JsonSchema": {"name": SCHEMA_NAME},
    "Message": MESSAGE,
    "Item": MESSAGE | {"type": {"enum": ["message", None]}},
    "Part": {"type": {"enum": list(prompts.TEXT_PARTS)}, "text": {"type": "string"}},
}  # fmt: skip
STOPS = {"anyOf": [STOP, {"type": "array", "items": STOP, "maxItems": sampling.MAX_STOPS}, {"type": "null"}]}
REQUIRED = {
    "ChatRequest": ["model", "messages"],
    "CompletionRequest": ["model", "prompt"],
    "ResponsesRequest": ["model", "input"],
    "EmbeddingsRequest": ["model", "input"],
    "Message": ["role", "content"],
    "Item": ["role", "content"],
    "JsonSchema": ["name"],
    "Part": ["type", "text"],
}
# Refused by their doors unless they ask for nothing, or of another kind of message or item.
REFUSED = {
    "Message": ("tool_call_id",),
    "Item": ("name", "arguments", "call_id", "output"),
    "CompletionRequest": ("echo", "suffix", "best_of"),
    "ResponsesRequest": ("previous_response_id", "background", "n"),
}
LISTS = {
    "Messages": ("Message", "CallingMessage", "ResultMessage"),
    "Items": ("Item", "CallItem", "ResultItem"),
}


def request_schemas() -> dict[str, dict[str, Any]]:
    """Every schema that the requests need, by name."""
    _, found = msgspec.json.schema_components(REQUESTS, ref_template=refs.SCHEMA_TEMPLATE)
    schemas: dict[str, dict[str, Any]] = deepcopy(found)
    for name, shape in schemas.items():
        if "properties" in shape:
            _refine(name, shape)
    for name, of in LISTS.items():
        schemas[name] = {
            "type": "array",
            "items": {"anyOf": [refs.schema(one) for one in of]},
            "minItems": 1,
            "maxItems": prompts.MAX_MESSAGES,
        }
    schemas |= tools.tool_schemas(CONTENT)
    for part in ("CalledFunction", "ToolCall"):  # described as `MadeCall`; answers have their own
        del schemas[part]
    schemas["ChatRequest"] |= TOP_NEEDS_LOGPROBS
    return schemas


def _refine(name: str, shape: dict[str, Any]) -> None:
    instead = INSTEAD.get(name, {})
    fields = {}
    for field, given in shape["properties"].items():
        if field in REFUSED.get(name, ()):
            continue
        described = instead.get(field) or _described(field, given)
        if set(described) - {"default"}:
            fields[field] = described
    shape["properties"] = fields
    shape["required"] = REQUIRED.get(name, shape.get("required", []))


def _described(field: str, given: dict[str, Any]) -> dict[str, Any]:
    """The type with its range. Null equals not given, and says nothing as a default."""
    if field == "stop":
        return STOPS
    described = {key: value for key, value in given.items() if key != "default" or value is not None}
    rule = ANYWHERE.get(field)
    if rule is None:
        return described
    kinds = [kind if kind == {"type": "null"} else kind | rule for kind in given.get("anyOf", [given])]
    return described | {"anyOf": kinds} if "anyOf" in given else kinds[0]
