"""Functions, calls and results in the bodies that `/v1` takes, as JSON schemas.

Knows what the doors check (`v1.tools`, `v1.prompts`, `v1.input_items`). What a schema cannot say, such as that two
functions have two names, is said in words.
"""

from __future__ import annotations

from typing import Any

from chatsite.openapi import refs
from chatsite.v1.prompts import MAX_CALLS
from inference.tools.functions import CHOICES, MAX_FUNCTIONS, NAME

NULL = {"type": "null"}
NAME_OF_CALLED = {"type": "string", "pattern": f"^{NAME.pattern}$"}
NAME_OF_FUNCTION = NAME_OF_CALLED | {"description": f"None of: {', '.join(sorted(CHOICES))}."}
CALL_ID = {"type": ["string", "null"]}
ARGUMENTS = {
    "type": ["string", "null"],
    "description": "The arguments as the JSON text of an object.",
    "examples": ["{}"],
}
FUNCTION = {
    "name": NAME_OF_FUNCTION,
    "description": {"anyOf": [{"type": "string"}, NULL]},
    "parameters": {
        "anyOf": [{"type": "object", "properties": {"type": {"const": "object"}}}, NULL],
        "description": "The JSON schema of the arguments.",
    },
    "strict": {"anyOf": [{"type": "boolean"}, NULL]},
}
PARALLEL = {"parallel_tool_calls": {"anyOf": [{"type": "boolean"}, NULL]}}
MAY_BE_NOTHING = {"anyOf": [{"type": "string"}, {"type": "array", "items": refs.schema("Part")}]}
CALLS = {"type": "array", "items": refs.schema("MadeCall"), "minItems": 1, "maxItems": MAX_CALLS}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _tools(name: str) -> dict[str, Any]:
    tools = {"type": "array", "items": refs.schema(name), "maxItems": MAX_FUNCTIONS}
    return {
        "anyOf": [tools, NULL],
        "description": "Functions that the model may call, each with a name of its own.",
    }


def _choice(named: dict[str, Any]) -> dict[str, Any]:
    words = "`required` and one function want a call; both need `tools` that offer one."
    return {"anyOf": [{"enum": list(CHOICES)}, named, NULL], "description": words}


_NAMED = _object({"name": NAME_OF_FUNCTION}, "name")
CHAT = PARALLEL | {
    "tools": _tools("ChatTool"),
    "tool_choice": _choice(_object({"type": {"const": "function"}, "function": _NAMED}, "type", "function")),
}
RESPONSES = PARALLEL | {
    "tools": _tools("OfferedFunction"),
    "tool_choice": _choice(
        _object({"type": {"const": "function"}, "name": NAME_OF_FUNCTION}, "type", "name")
    ),
}


def tool_schemas(text_content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By name. `text_content` is what a message says that must say something."""
    of_function = {"type": {"const": "function"}}
    kind = {"type": {"anyOf": [{"const": "function"}, NULL]}}
    called = {"name": NAME_OF_CALLED, "arguments": ARGUMENTS}
    return {
        "ChatTool": _object(of_function | {"function": _object(FUNCTION, "name")}, "type", "function"),
        "OfferedFunction": _object(of_function | FUNCTION, "type", "name"),
        "MadeCall": _object(
            kind | {"id": {"type": "string"}, "function": _object(called, "name")},
            "function",
        ),
        "CallingMessage": _object(
            {"role": {"const": "assistant"}, "content": {"anyOf": [MAY_BE_NOTHING, NULL]}, "tool_calls": CALLS},
            "role", "tool_calls",
        ),
        "ResultMessage": _object(
            {"role": {"const": "tool"}, "content": text_content, "tool_call_id": CALL_ID}, "role", "content"
        ),
        "CallItem": _object(
            {"type": {"const": "function_call"}, "call_id": CALL_ID} | called,
            "type", "name",
        ),
        "ResultItem": _object(
            {"type": {"const": "function_call_output"}, "call_id": CALL_ID, "output": MAY_BE_NOTHING},
            "type", "output",
        ),
    }  # fmt: skip
