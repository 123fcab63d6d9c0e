"""A small value that fits a JSON schema: the example of an operation whose author gave none.

Knows the keywords that our schemas use. What cannot be guessed, such as a pattern, needs an example in the schema.
"""

from __future__ import annotations

from typing import Any

FORMATS = {
    "uuid": "0b8f6a3e-7c55-4e0e-9d42-3a1f0c2d4e5f",
    "date-time": "2026-09-21T12:00:00Z",
    "date": "2026-09-21",
    "binary": "(the file)",
    "email": "ann@example.com",
}


def sample(schema: dict[str, Any], schemas: dict[str, Any], within: tuple[str, ...] = ()) -> Any:
    """A value for `schema`; `schemas` are those that it may refer to. Raises KeyError for an unknown reference."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return sample(schemas[name], schemas, (*within, name))
    for given in ("example", "const", "default"):
        if given in schema:
            return schema[given]
    if schema.get("examples"):
        return schema["examples"][0]
    if "enum" in schema:
        return schema["enum"][0]
    for combined in ("anyOf", "oneOf", "allOf"):
        if combined in schema:
            return sample(_first(schema[combined], within), schemas, within)
    return _by_type(schema, schemas, within)


def _first(kinds: list[dict[str, Any]], within: tuple[str, ...]) -> dict[str, Any]:
    """The first kind that says something and does not begin all over again."""
    nulls = [kind for kind in kinds if kind.get("type") == "null"]
    others = [kind for kind in kinds if kind not in nulls and not _is_within(kind, within)]
    return (others + nulls)[0]


def _is_within(schema: dict[str, Any], within: tuple[str, ...]) -> bool:
    return schema.get("$ref", "").rsplit("/", 1)[-1] in within


def _by_type(schema: dict[str, Any], schemas: dict[str, Any], within: tuple[str, ...]) -> Any:
    kind = schema.get("type", "object")
    match kind if isinstance(kind, str) else kind[0]:
        case "object":
            fields = schema.get("properties", {})
            return {
                name: sample(of, schemas, within) for name, of in fields.items() if not _is_within(of, within)
            }
        case "array":
            items = schema.get("items", {"type": "string"})
            return [] if _is_within(items, within) else [sample(items, schemas, within)]
        case "string":
            return FORMATS.get(schema.get("format", ""), "text".ljust(schema.get("minLength", 0), "x"))
        case "integer" | "number":
            return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        case "boolean":
            return True
    return None
