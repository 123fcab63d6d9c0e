"""The form of a chat's sampling knows the server's parameters and their bounds."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chatsite.chat.schemas.conversations import ConversationIn, Parameters
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
# A number of a script is exact up to here; the server takes larger seeds.
LARGEST_EXACT = 2**53 - 1


@pytest.mark.skipif(
    shutil.which("node") is None, reason="Node is not installed; the browser tests cover the form"
)
def test_the_form_has_every_parameter_with_the_servers_bounds() -> None:
    module = (ROOT / "static/chat/sheets/parameters.js").as_uri()
    script = (
        f"import('{module}').then((m) => console.log(JSON.stringify([m.PARAMETERS, m.MAX_PROMPT_CHARS])))"
    )
    ran = subprocess.run(
        ["node", "-e", script], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    form, max_prompt = json.loads(ran.stdout)
    assert {one["name"]: bounds_of_form(one) for one in form} == {
        name: bounds_of_server(name, schema)
        for name, schema in Parameters.model_json_schema()["properties"].items()
    }
    assert max_prompt == ConversationIn.model_json_schema()["properties"]["system_prompt"]["maxLength"]


def bounds_of_form(one: dict[str, Any]) -> tuple[Any, ...]:
    if one["name"] == "stop":
        return one["most"], one["longest"]
    return one["min"], one["max"], one.get("isWhole", False), one.get("isAboveMin", False)


def bounds_of_server(name: str, schema: dict[str, Any]) -> tuple[Any, ...]:
    """What the OpenAPI document says of the parameter, which may also be null."""
    found = schema["anyOf"][0]
    if name == "stop":
        return found["maxItems"], found["items"]["maxLength"]
    is_above = "exclusiveMinimum" in found
    return (
        found["exclusiveMinimum" if is_above else "minimum"],
        min(found.get("maximum", LARGEST_EXACT), LARGEST_EXACT),
        found["type"] == "integer",
        is_above,
    )
