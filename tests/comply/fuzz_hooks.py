"""What the schema cannot say: names and numbers of the model that is served. Loaded by schemathesis.

Without this nearly every generated request would end at the name of its model.
"""

from __future__ import annotations

import os
import re
from typing import Any

import schemathesis

CHAT_MODEL, EMBEDDER = os.environ["COMPLY_MODELS"].split()
NUM_DIMENSIONS = 384
NUM_TOKENS = 200  # of the vocabulary, that surely are there
# Of two fields a schema cannot say that one is not above the other.
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
MAX_ANSWERS = 8  # to all prompts of a request together
DEFAULT_LIMIT = 16  # of text completions
MAX_TOKEN_ID = 2**31 - 1
HELD = {"name": "answer", "schema": {"type": "object"}}
NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    embeds = context.operation.path.endswith("/embeddings")
    if isinstance(body.get("model"), str) and body["model"]:
        body["model"] = EMBEDDER if embeds else CHAT_MODEL
    if embeds and isinstance(body.get("dimensions"), int):
        body["dimensions"] = NUM_DIMENSIONS
    if isinstance(body.get("stop_token_ids"), list):
        body["stop_token_ids"] = [_token(token) for token in body["stop_token_ids"][:16]]
    if isinstance(body.get("logit_bias"), dict):
        body["logit_bias"] = {_name(name): bias for name, bias in body["logit_bias"].items()}
    if isinstance(body.get("min_tokens"), int | float):
        limits = [body[name] for name in LIMITS if isinstance(body.get(name), int | float)]
        body["min_tokens"] = min([body["min_tokens"], DEFAULT_LIMIT, *limits])
    if isinstance(body.get("n"), int | float) and isinstance(body.get("prompt"), list):
        body["n"] = min(body["n"], MAX_ANSWERS // max(1, min(MAX_ANSWERS, len(body["prompt"]))))
    _make_tools_fit(body)
    _make_format_fit(body)
    return body


@schemathesis.hook
def map_query(context: Any, query: Any) -> Any:
    """A cursor is what an answer gave before; a made-up one is only refused."""
    return {name: value for name, value in query.items() if name != "cursor"} if query else query


def _make_tools_fit(body: dict[str, Any]) -> None:
    """Functions have names of their own and schemas that can be held; a choice is one of them; arguments are JSON."""
    for number, tool in enumerate(_objects(body.get("tools"))):
        for function in (tool, *_objects([tool.get("function")])):
            _name_it(function, f"f{number}")
            if isinstance(function.get("parameters"), dict):
                function["parameters"] = {"type": "object"}
    for choice in _objects([body.get("tool_choice")]):
        for named in (choice, *_objects([choice.get("function")])):
            _name_it(named, "f0")
    for message in [*_objects(body.get("messages")), *_objects(body.get("input"))]:
        called = [call.get("function") for call in _objects(message.get("tool_calls"))]
        for call in (message, *_objects(called)):
            _name_it(call, "f0")
            if isinstance(call.get("arguments"), str):
                call["arguments"] = "{}"


def _objects(given: Any) -> list[dict[str, Any]]:
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _name_it(function: dict[str, Any], name: str) -> None:
    """Where it has a name that the schema allows; Python's `$` lets a line end pass."""
    if isinstance(function.get("name"), str) and NAME.search(function["name"]):
        function["name"] = name


def _make_format_fit(body: dict[str, Any]) -> None:
    """A schema that is asked for is there, has a name, and can be held; a call that is wanted has functions."""
    if not _objects(body.get("tools")) and isinstance(body.get("tool_choice"), dict | str):
        body["tool_choice"] = "none"
    for holder in (
        body.get("response_format"),
        *(text.get("format") for text in _objects([body.get("text")])),
    ):
        for asked in _objects([holder]):
            if asked.get("type") != "json_schema":
                asked.pop("json_schema", None)
            elif holder is body.get("response_format"):
                asked["json_schema"] = HELD
            else:
                asked.update(HELD)


def _token(given: Any) -> Any:
    is_token = isinstance(given, int | float) and given == int(given) and 0 <= given <= MAX_TOKEN_ID
    return int(given) % NUM_TOKENS if is_token else given


def _name(given: str) -> str:
    return str(int(given) % NUM_TOKENS) if given.isascii() and given.isdigit() and len(given) < 10 else given
