"""Random JSON schemas whose answers are short: a random model never closes a text by itself."""

from __future__ import annotations

import random
from typing import Any


def random_schema(source: random.Random) -> dict[str, Any]:
    """An object of up to four fields, some of them optional, two levels deep."""
    return _object(source, depth=2)


def _object(source: random.Random, depth: int) -> dict[str, Any]:
    names = source.sample(["name", "größe", "城市", "a b", 'quo"te', "x"], source.randint(1, 4))
    return {
        "type": "object",
        "properties": {name: _value(source, depth - 1) for name in names},
        "required": [name for name in names if source.random() < 0.7],
        "additionalProperties": False,
    }


def _value(source: random.Random, depth: int) -> dict[str, Any]:
    leaves: list[dict[str, Any]] = [
        {"type": "string", "maxLength": source.randint(0, 12)},
        {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,4}$"},
        {"type": "string", "format": source.choice(["date", "uuid", "ipv4"])},
        {"enum": ["red", "grün", "蓝", 7, None, True]},
        {"const": {"k": [1, "two"]}},
        {"type": "integer", "minimum": -50, "maximum": 1000},
        {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.25},
        {"type": ["boolean", "null"]},
        {"anyOf": [{"type": "boolean"}, {"type": "string", "minLength": 2, "maxLength": 4}]},
    ]
    if depth and source.random() < 0.4:
        return _object(source, depth)
    if depth and source.random() < 0.4:
        return {"type": "array", "items": _value(source, depth - 1), "minItems": 1, "maxItems": 3}
    return source.choice(leaves)
