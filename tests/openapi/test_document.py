"""The OpenAPI document is complete and true to itself: routes, codes, examples. tests/comply holds answers to it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from inspect import getclosurevars
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator

from chatsite.api import api
from chatsite.openapi.codes import CODES, IN_STREAM

API_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()
# Where one begins, and all that is not there: 404 as an error object, whoever asks.
NOWHERE = {"/api/", "/v1", "/v1/", "/v1/{rest}"}
METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return api.get_openapi_schema()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "/") -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        else:
            yield re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route), pattern.callback


def served() -> dict[str, set[str]]:
    """Paths under the REST doors, with their methods where the view tells them."""
    found: dict[str, set[str]] = {}
    for route, view in routes(get_resolver().url_patterns):
        if re.match(r"/(v1|api)(/|$)", route) and route not in NOWHERE:
            # django-ninja's view is a closure over the object that knows its operations.
            by_method = getattr(getclosurevars(view).nonlocals.get("self"), "operations", ())
            methods = {method.lower() for operation in by_method for method in operation.methods}
            found.setdefault(route, set()).update(methods)
    return found


def test_what_is_served_is_documented_and_nothing_else(document: dict[str, Any]) -> None:
    routes_served = served()
    assert len(routes_served) > 15
    assert set(document["paths"]) == set(routes_served)
    for path, methods in routes_served.items():
        documented = set(document["paths"][path])
        assert documented and documented <= set(METHODS)
        assert not methods or documented == methods, path


@pytest.mark.parametrize("path", ["/api/openapi.json", "/api/docs"])
def test_pages_about_the_api_are_only_read(client: Client, path: str) -> None:
    for method in ("post", "put", "patch", "delete", "options"):
        refused = getattr(client, method)(path)
        assert (refused.status_code, refused.json()["error"]["code"]) == (405, "method_not_allowed")
        assert refused["Allow"] == "GET, HEAD"
    assert client.get(path).status_code == 302


def test_it_is_valid_openapi(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(document).validate()


def test_every_operation_has_a_name_of_its_own_a_summary_and_its_security(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(names) == len(set(names))
    for name, operation in operations(document):
        assert operation["summary"] and "security" in operation, name
        schemes = {scheme for way in operation["security"] for scheme in way}
        assert schemes <= set(document["components"]["securitySchemes"])


def test_every_error_code_is_in_the_document_and_on_the_page(document: dict[str, Any]) -> None:
    table = API_PAGE.split("## Error codes")[1]
    rows = re.findall(r"^\| (`.+?) \| (\w[\w ]*) \|", table, flags=re.M)
    told = {
        code: IN_STREAM if status == "in the stream" else int(status)
        for codes, status in rows
        if status != "frame"
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert told == CODES
    shown = document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"][
        "examples"
    ]
    assert set(shown) == set(CODES)
    for response in document["components"]["responses"].values():
        for code, example in response["content"]["application/json"].get("examples", {}).items():
            assert example["value"]["error"]["code"] == code


def test_every_operation_says_what_it_answers_when_it_cannot(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        statuses = set(operation["responses"])
        if operation["tags"] != ["documentation"]:
            assert {"400", "401", "403", "405", "429", "500", "503"} <= statuses, name
        assert ("413" in statuses) >= ("requestBody" in operation), name
        assert any(status < "300" for status in statuses), name


def test_every_example_is_valid_against_its_own_schema(document: dict[str, Any]) -> None:
    num_examples = 0
    for name, operation in operations(document):
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        responses = [_resolved(document, response) for response in operation["responses"].values()]
        for described in [*bodies, *responses]:
            for media in described.get("content", {}).values():
                for example in _examples(media, name):
                    num_examples += 1
                    check(document, media["schema"], example, name)
                    check_event(document, media["schema"], example, name)
        for parameter in operation.get("parameters", []):
            if "example" in parameter:
                check(document, parameter["schema"], parameter["example"], name)
    assert num_examples > 100


def test_no_field_of_a_request_is_left_without_a_type(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ("ChatRequest", "CompletionRequest", "ResponsesRequest", "EmbeddingsRequest"):
        for field, described in schemas[name]["properties"].items():
            assert set(described) & {"type", "anyOf", "enum", "$ref", "oneOf"}, f"{name}.{field}"


def test_a_function_is_offered_by_its_name_alone(document: dict[str, Any]) -> None:
    """What an answer always tells of it, a request need not: two shapes, each with a name of its own."""
    body = {"model": "m", "input": "Which?", "tools": [{"type": "function", "name": "look_up"}]}
    check(document, document["components"]["schemas"]["ResponsesRequest"], body, "ResponsesRequest")


def check(document: dict[str, Any], schema: dict[str, Any], example: Any, name: str) -> None:
    whole = schema | {"components": document["components"]}
    errors = list(Draft202012Validator(whole, format_checker=FormatChecker()).iter_errors(example))
    assert not errors, f"{name}: {errors[0].message} in {example}"


def check_event(document: dict[str, Any], schema: dict[str, Any], example: Any, name: str) -> None:
    """What an event of a stream holds has a schema of its own."""
    told = schema.get("properties", {}).get("data", {})
    for one in told.get("anyOf", [told]):
        if "contentSchema" in one:
            check(document, one["contentSchema"], json.loads(example["data"]), name)


def _examples(media: dict[str, Any], name: str) -> list[Any]:
    examples = [media["example"]] if "example" in media else []
    examples += [example["value"] for example in media.get("examples", {}).values()]
    assert examples or media["schema"] == {"$ref": "#/components/schemas/Error"}, f"no example: {name}"
    return examples


def _resolved(document: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in response:
        return response
    return document["components"]["responses"][response["$ref"].rsplit("/", 1)[-1]]


def _without_a_path(document: dict[str, Any]) -> None:
    del document["paths"]["/v1/embeddings"]


def _with_a_path_that_is_not_there(document: dict[str, Any]) -> None:
    document["paths"]["/v1/audio"] = document["paths"]["/v1/models"]


def _without_a_method(document: dict[str, Any]) -> None:
    del document["paths"]["/api/keys"]["post"]


def _with_an_example_of_another_time(document: dict[str, Any]) -> None:
    del document["paths"]["/v1/models"]["get"]["responses"]["200"]["content"]["application/json"]["example"][
        "data"
    ]


def _with_an_event_of_another_time(document: dict[str, Any]) -> None:
    content = document["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"]
    content["text/event-stream"]["example"]["data"] = "{}"


def _without_an_example(document: dict[str, Any]) -> None:
    del document["paths"]["/v1/completions"]["post"]["requestBody"]["content"]["application/json"]["example"]


def _without_a_code(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["examples"].pop()


def _with_a_field_of_any_type(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["ChatRequest"]["properties"]["seed"] = {}


MUTANTS = {
    _without_a_path: test_what_is_served_is_documented_and_nothing_else,
    _with_a_path_that_is_not_there: test_what_is_served_is_documented_and_nothing_else,
    _without_a_method: test_what_is_served_is_documented_and_nothing_else,
    _with_an_example_of_another_time: test_every_example_is_valid_against_its_own_schema,
    _with_an_event_of_another_time: test_every_example_is_valid_against_its_own_schema,
    _without_an_example: test_every_example_is_valid_against_its_own_schema,
    _without_a_code: test_every_error_code_is_in_the_document_and_on_the_page,
    _with_a_field_of_any_type: test_no_field_of_a_request_is_left_without_a_type,
}


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__.strip("_"))
def test_each_promise_has_a_mutant_that_is_noticed(mutate: Callable[[dict[str, Any]], None]) -> None:
    mutant = deepcopy(dict(api.get_openapi_schema()))
    mutate(mutant)
    with pytest.raises(AssertionError):
        MUTANTS[mutate](mutant)
