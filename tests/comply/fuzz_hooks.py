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
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


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
    return body


def _make_tools_fit(body: dict[str, Any]) -> None:
    """Functions have names of their own and schemas that can be held; a choice is one of them; arguments are JSON."""
    tools = body.get("tools")
    functions = (
        [tool.get("function", tool) for tool in tools if isinstance(tool, dict)]
        if isinstance(tools, list)
        else []
    )
    for number, function in enumerate(functions):
        if (
            isinstance(function, dict)
            and isinstance(function.get("name"), str)
            and NAME.fullmatch(function["name"])
        ):
            function["name"] = f"f{number}"
        if isinstance(function, dict) and isinstance(function.get("parameters"), dict):
            function["parameters"] = {"type": "object"}
    choice = body.get("tool_choice")
    named = choice.get("function", choice) if isinstance(choice, dict) else None
    if functions and isinstance(named, dict) and isinstance(named.get("name"), str):
        named["name"] = "f0"
    for message in [
        one for name in ("messages", "input") if isinstance(body.get(name), list) for one in body[name]
    ]:
        called = message.get("tool_calls") if isinstance(message, dict) else None
        calls = (
            [call.get("function") for call in called if isinstance(call, dict)]
            if isinstance(called, list)
            else []
        )
        for call in [message, *calls]:
            if isinstance(call, dict) and isinstance(call.get("arguments"), str):
                call["arguments"] = "{}"


def _token(given: Any) -> Any:
    is_token = isinstance(given, int | float) and given == int(given) and 0 <= given <= MAX_TOKEN_ID
    return int(given) % NUM_TOKENS if is_token else given


def _name(given: str) -> str:
    return str(int(given) % NUM_TOKENS) if given.isascii() and given.isdigit() and len(given) < 10 else given
