"""Calls of functions as values, and as the JSON that a `Segment` carries.

Knows names and arguments. Does not know how a model writes them (`tools.formats`), nor which functions there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn


class BadCalls(ValueError):
    """What is given as calls is none."""


@dataclass(frozen=True, slots=True)
class Call:
    """`arguments` is the JSON of an object. `id` is empty until somebody names the call."""

    name: str
    arguments: str = "{}"
    id: str = ""


def object_in(text: str) -> dict[str, Any] | None:
    """The JSON object that `text` is; None for all else, and for one that cannot be written again."""
    try:
        value = json.loads(text, parse_constant=_no_number)
        if not isinstance(value, dict):
            return None
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):  # among them half surrogate pairs, and numbers without bounds
        return None
    return value


def written(value: dict[str, Any]) -> str:
    """As templates write arguments, so that what comes back is read as it was made."""
    return json.dumps(value, ensure_ascii=False)


def as_json(calls: Iterable[Call]) -> str:
    """As `Segment.tool_calls` carries them; empty for none."""
    listed = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
    return json.dumps(listed, ensure_ascii=False) if listed else ""


def from_json(tool_calls: str) -> tuple[Call, ...]:
    """Raises BadCalls for what is no list of calls with objects as arguments."""
    if not tool_calls:
        return ()
    try:
        given = json.loads(tool_calls)
    except (ValueError, RecursionError) as error:
        raise BadCalls("calls are a JSON list") from error
    if not isinstance(given, list):
        raise BadCalls("calls are a JSON list")
    return tuple(_call(entry) for entry in given)


def _call(entry: Any) -> Call:
    fields = entry if isinstance(entry, dict) else {}
    name, arguments, call_id = fields.get("name"), fields.get("arguments", ""), fields.get("id", "")
    if not (isinstance(name, str) and name and isinstance(arguments, str) and isinstance(call_id, str)):
        raise BadCalls("a call has a name, arguments as JSON and an id")
    if object_in(arguments or "{}") is None:
        raise BadCalls(f"the arguments of a call of {name[:64]!r} are no JSON object")
    return Call(name, arguments or "{}", call_id)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
