"""How the document points to its own named parts. Knows no part."""

from __future__ import annotations

from typing import Any

# As msgspec wants it told.
SCHEMA_TEMPLATE = "#/components/schemas/{name}"


def schema(name: str) -> dict[str, Any]:
    return {"$ref": SCHEMA_TEMPLATE.format(name=name)}


def response(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/responses/{name}"}
