"""The document: django-ninja's for `/api`, with `/v1`, errors, security and examples for every operation.

Knows how the parts are put together. An operation of `/api` may bring its own examples and responses; what it does not
bring is filled in here, so that nothing is served undescribed.
"""

from __future__ import annotations

from typing import Any

import msgspec
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from chatsite.openapi import errors, refs
from chatsite.openapi.answers import ANSWERS
from chatsite.openapi.requests import request_schemas
from chatsite.openapi.samples import sample
from chatsite.openapi.v1 import JSON, KEY, v1_paths

SAFE = {"GET", "HEAD", "OPTIONS"}
SESSION, CSRF = "session", "csrf"
EMPTY = {"openapi": "3.1.0", "info": {"title": "Rill", "version": "1"}, "paths": {}}
SECURITY_SCHEMES = {
    KEY: {"type": "http", "scheme": "bearer", "description": "An API key with the scope that is named."},
    SESSION: {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": "A signed-in person."},
    CSRF: {
        "type": "apiKey",
        "in": "header",
        "name": "X-CSRFToken",
        "description": "The value of the cookie `csrftoken`; for everything that changes something.",
    },
}
TAGS = [
    {
        "name": "OpenAI-compatible",
        "description": "For clients of OpenAI's API, unchanged. Unknown fields are ignored and listed in "
        "`X-Ignored-Fields`; null equals not given.",
    }
]


class Document(OpenAPISchema):
    """The whole document as a dictionary, ready to be sent."""

    def __init__(self, api: Any, path_prefix: str) -> None:
        super().__init__(api, path_prefix)
        self["tags"] = TAGS
        self["servers"] = [{"url": "/", "description": "This server."}]
        self.schemas.update(_v1_schemas(self.schemas))
        for path in self["paths"].values():
            for operation in path.values():
                self._exemplify(operation)
        self["paths"] |= v1_paths() | _own_paths(api)

    def operation_details(self, operation: Operation) -> dict[str, Any]:
        details: dict[str, Any] = super().operation_details(operation)
        places = {parameter["in"] for parameter in details["parameters"]}
        common = errors.error_responses(has_body="requestBody" in details, has_path="path" in places)
        given = {str(status): response for status, response in details["responses"].items()}
        details["responses"] = common | given
        return details

    def operation_parameters(self, operation: Operation) -> list[dict[str, Any]]:
        parameters: list[dict[str, Any]] = super().operation_parameters(operation)
        for parameter in parameters:
            # A list is right in a schema; beside one, OpenAPI wants names for them.
            if isinstance(parameter.get("examples"), list):
                parameter["example"] = parameter.pop("examples")[0]
        return parameters

    def operation_security(self, operation: Operation) -> list[dict[str, Any]]:
        by_session: dict[str, list[str]] = {SESSION: []}
        if not SAFE.issuperset(operation.methods):
            by_session[CSRF] = []
        scopes = [scope for auth in operation.auth_callbacks for scope in getattr(auth, "scopes", ())]
        if not operation.auth_callbacks:
            return [{}]
        return [by_session, *({KEY: [scope]} for scope in scopes)]

    def get_components(self) -> dict[str, Any]:
        self.schemas["Error"] = errors.error_schema()
        return {
            "schemas": self.schemas,
            "responses": errors.components(),
            "securitySchemes": SECURITY_SCHEMES,
        }

    def _exemplify(self, operation: dict[str, Any]) -> None:
        """Gives the body and the answers of an operation of `/api` an example where they have none."""
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for described in [*bodies, *operation["responses"].values()]:
            for media in described.get("content", {}).values():
                if "schema" in media and not {"example", "examples"} & set(media):
                    media["example"] = sample(media["schema"], self.schemas)


def _own_paths(api: Any) -> dict[str, Any]:
    """Of this document and the page that shows it."""
    whole = {JSON: {"schema": {"type": "object", "required": ["openapi", "paths"]}, "example": EMPTY}}
    page = {"text/html": {"schema": {"type": "string"}, "example": "<!DOCTYPE html>"}}
    return {
        "/api" + api.openapi_url: {"get": _for_signed_in("read_openapi", "This document", whole)},
        "/api" + api.docs_url: {"get": _for_signed_in("read_docs", "This document as a page", page)},
    }


def _for_signed_in(name: str, summary: str, content: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "tags": ["documentation"],
        "security": [{SESSION: []}],
        "responses": {
            "200": {"description": "OK", "content": content},
            "302": {"description": "Nobody is signed in: to the page where one signs in."},
        },
    }


def _v1_schemas(taken: dict[str, Any]) -> dict[str, Any]:
    requests = request_schemas()
    _, answers = msgspec.json.schema_components(ANSWERS, ref_template=refs.SCHEMA_TEMPLATE)
    clashing = set(requests) & set(answers) | (set(requests) | set(answers)) & set(taken)
    assert not clashing, f"two shapes of one name: {sorted(clashing)}"
    return requests | answers
