"""What no schema can say of a right request, because it is between two of its parts. Loaded by schemathesis.

Wrong requests are sent as they were made. What was answered is written down, status by status.
"""

from __future__ import annotations

import os
import re
from copy import deepcopy
from pathlib import Path
from typing import Any
from uuid import uuid4

import re2
import schemathesis

from semcache.rules.policy import BadPattern, compile_pattern

# Of two fields a schema cannot say that one is not above the other.
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
SIMILARITIES = ("verify_similarity", "accept_similarity")
MAX_ANSWERS = 8  # to all prompts of a request together
MANY_TOOLS = 8
DEFAULT_LIMIT = 16  # of text completions
HELD = {"name": "answer", "schema": {"type": "object"}}
NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    with Path(os.environ["FUZZ_STATUSES"]).open("a") as statuses:
        statuses.write(f"{response.status_code}\n")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    is_right = case.meta is not None and case.meta.generation.mode.is_positive
    if not is_right or not isinstance(case.body, dict):
        return
    if case.operation.path.startswith("/v1/"):
        case.body = _fitting(case.body)
    elif "client_message_id" in case.body:
        # Made once per message: the same one with another text is refused.
        case.body = case.body | {"client_message_id": str(uuid4())}
    elif case.operation.path.startswith("/api/cache/rules"):
        case.body = _fitting_rule(case.body)


def _fitting(given: dict[str, Any]) -> dict[str, Any]:
    body = deepcopy(given)
    if isinstance(body.get("min_tokens"), int | float):
        limits = [body[name] for name in LIMITS if isinstance(body.get(name), int | float)]
        body["min_tokens"] = min([body["min_tokens"], DEFAULT_LIMIT, *limits])
    if isinstance(body.get("n"), int | float) and isinstance(body.get("prompt"), list):
        body["n"] = min(body["n"], MAX_ANSWERS // max(1, min(MAX_ANSWERS, len(body["prompt"]))))
    _make_tools_fit(body)
    _make_format_fit(body)
    return body


def _fitting_rule(body: dict[str, Any]) -> dict[str, Any]:
    """No two rules have one name, a pattern is one, and what is verified is no more alike than what is accepted."""
    named = body | ({"name": str(uuid4())} if isinstance(body.get("name"), str) else {})
    if isinstance(named.get("pattern"), str) and not _is_pattern(named["pattern"]):
        named["pattern"] = re2.escape(named["pattern"])
    bounds = [named[name] for name in SIMILARITIES if isinstance(named.get(name), int | float)]
    return named | (dict(zip(SIMILARITIES, (min(bounds), max(bounds)), strict=True)) if bounds else {})


def _is_pattern(given: str) -> bool:
    try:
        compile_pattern(given)
    except BadPattern:
        return False
    return True


def _make_tools_fit(body: dict[str, Any]) -> None:
    """Functions have names of their own and schemas that can be held; a choice is one of them; arguments are JSON.

    All functions are told to the model, whose window they must fit.
    """
    if isinstance(body.get("tools"), list):
        body["tools"] = body["tools"][:MANY_TOOLS]
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
