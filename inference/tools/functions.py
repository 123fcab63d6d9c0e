"""The functions that a request offers to the model, in OpenAI's form, checked.

Knows limits and names. Does not know how a template shows them, nor which field of which request they came from:
errors carry the path inside of what was given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_FUNCTIONS = 128
MAX_CHARS = 512 * 1024  # of all of them as JSON
MAX_DEPTH = 64
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# What a choice between functions may be instead of the name of one.
AUTO, NONE, REQUIRED = "auto", "none", "required"
CHOICES = (AUTO, NONE, REQUIRED)


class BadFunctions(ValueError):
    """`path` leads to what is wrong, such as [3].function.name; empty for the whole."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


@dataclass(frozen=True, slots=True)
class Function:
    """`parameters` is the JSON schema of its arguments. `is_strict`: no others may be given."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    is_strict: bool = False

    def as_tool(self) -> dict[str, Any]:
        """As templates take it."""
        described = {"description": self.description} if self.description else {}
        return {
            "type": "function",
            "function": {"name": self.name, **described, "parameters": self.parameters},
        }


def read_function(given: Any, path: str) -> Function:
    """Of {name, description, parameters, strict}. Raises BadFunctions."""
    if not isinstance(given, dict):
        raise BadFunctions(path, "A function is an object with a name.")
    name, parameters = given.get("name"), given.get("parameters")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadFunctions(f"{path}.name", "A function's name has 1 to 64 of: A-Z, a-z, 0-9, _ and -.")
    if name in CHOICES:
        raise BadFunctions(f"{path}.name", f"A function cannot be called '{name}'.")
    description = given.get("description")
    if description is not None and not isinstance(description, str):
        raise BadFunctions(f"{path}.description", "A description is a text.")
    if parameters is not None and not _is_schema_of_object(parameters):
        raise BadFunctions(f"{path}.parameters", "Parameters are a JSON schema of an object.")
    if _depth(parameters) > MAX_DEPTH:
        raise BadFunctions(f"{path}.parameters", f"At most {MAX_DEPTH} levels are allowed.")
    if not isinstance(given.get("strict"), bool | None):
        raise BadFunctions(f"{path}.strict", "'strict' is true or false.")
    kept = {"parameters": parameters} if parameters else {}
    return Function(name, description or "", is_strict=bool(given.get("strict")), **kept)


def check_functions(functions: Sequence[Function]) -> None:
    """Raises BadFunctions for too many, too large, or two of one name."""
    if len(functions) > MAX_FUNCTIONS:
        raise BadFunctions("", f"At most {MAX_FUNCTIONS} functions are allowed.")
    seen: set[str] = set()
    for place, function in enumerate(functions):
        if function.name in seen:
            raise BadFunctions(f"[{place}]", f"There are two functions with the name '{function.name}'.")
        seen.add(function.name)
    if len(as_json(functions)) > MAX_CHARS:
        raise BadFunctions("", f"All functions together may have {MAX_CHARS} characters.")


def as_json(functions: Sequence[Function]) -> str:
    """As `GenerateRequest.tools` carries them; empty for none."""
    if not functions:
        return ""
    tools = [function.as_tool() for function in functions]
    for tool, function in zip(tools, functions, strict=True):
        if function.is_strict:
            tool["function"]["strict"] = True
    return json.dumps(tools, ensure_ascii=False)


def from_json(tools: str) -> tuple[Function, ...]:
    """What `as_json` wrote, or another caller in its place. Raises BadFunctions."""
    if not tools:
        return ()
    try:
        given = json.loads(tools)
    except (ValueError, RecursionError) as error:
        raise BadFunctions("", "The tools are no JSON that can be used.") from error
    if not isinstance(given, list) or not all(isinstance(tool, dict) for tool in given):
        raise BadFunctions("", "The tools are a list of objects.")
    functions = tuple(
        read_function(tool.get("function"), f"[{place}].function") for place, tool in enumerate(given)
    )
    check_functions(functions)
    return functions


def _is_schema_of_object(parameters: Any) -> bool:
    return isinstance(parameters, dict) and parameters.get("type", "object") == "object"


def _depth(value: Any) -> int:
    """Levels of nesting, counted no further than needed."""
    depth, level = 0, [value]
    while depth <= MAX_DEPTH and (level := [one for one in level if isinstance(one, dict | list)]):
        depth += 1
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
    return depth
