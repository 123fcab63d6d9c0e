"""Bodies under /api are taken as the document says: a number is a number, and what depends on another field is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from django.test import RequestFactory
from jsonschema import Draft202012Validator
from ninja import Schema
from pydantic import ValidationError

from chatsite.api import api
from chatsite.chat.schemas.conversations import ConversationIn, Parameters
from chatsite.errors import InvalidRequest
from chatsite.json_types import SAYS_SOMETHING
from chatsite.v1.errors import ApiError
from chatsite.v1.input_items import input_segments
from chatsite.v1.prompts import segment_of
from chatsite.v1.schema import Item, Message

NO_NUMBERS = (True, "5")
WRONG = {"boolean": (0, 1, "true"), "integer": NO_NUMBERS, "number": NO_NUMBERS}


def operations(routers: Any) -> Iterator[Any]:
    for _, router, *_ in routers:
        for path in router.path_operations.values():
            yield from path.operations
        yield from operations(router._routers)


def body_classes() -> Iterator[type[Schema]]:
    for operation in operations(api._routers):
        for model in operation.models:
            if model.__ninja_param_source__ == "body":
                for field in model.model_fields.values():
                    yield field.annotation


def typed_fields() -> Iterator[Any]:
    for shape in {shape.__name__: shape for shape in body_classes()}.values():
        described = shape.model_json_schema()
        for name, of in described["properties"].items():
            kinds = {kind.get("type") for kind in of.get("anyOf", [of])} & set(WRONG)
            for kind in kinds:
                yield pytest.param(shape, name, kind, id=f"{shape.__name__}.{name}")


@pytest.mark.parametrize(("shape", "name", "kind"), list(typed_fields()))
def test_what_is_of_another_type_is_refused(shape: type[Schema], name: str, kind: str) -> None:
    for wrong in WRONG[kind]:
        with pytest.raises(ValidationError) as refused:
            shape.model_validate({name: wrong})
        assert name in {error["loc"][0] for error in refused.value.errors()}, f"{wrong!r} is taken"


def test_all_bodies_are_looked_at() -> None:
    assert {"ConversationIn", "TemplateIn", "RuleIn", "EvictIn", "KeyIn"} <= {
        shape.__name__ for shape in body_classes()
    }


def test_limits_of_numbers_are_told() -> None:
    """A validator before them would hide them from the schema."""
    (described,) = (
        kind
        for kind in Parameters.model_json_schema()["properties"]["top_k"]["anyOf"]
        if kind["type"] == "integer"
    )
    assert described == {"type": "integer", "minimum": 0, "maximum": 1_000_000}


@pytest.mark.parametrize("raw", [b"[]", b"[null, null]", b'"grace_s"', b"7", b"true", b"null"])
def test_what_is_no_object_is_refused_before_anything_is_read_from_it(raw: bytes) -> None:
    """A body whose fields have defaults would be taken for one that gives none of them."""
    with pytest.raises(InvalidRequest):
        api.parser.parse_body(RequestFactory().post("/", raw, content_type="application/json"))
    assert all(issubclass(shape, Schema) for shape in body_classes())


def test_what_is_no_object_is_refused_within_a_body_too() -> None:
    for wrong in ([], "seed", 7):
        with pytest.raises(ValidationError):
            ConversationIn.model_validate({"parameters": wrong})


def test_numbers_within_objects_are_held_to_it_too() -> None:
    with pytest.raises(ValidationError):
        ConversationIn.model_validate({"parameters": {"seed": False}})
    with pytest.raises(ValidationError):
        ConversationIn.model_validate({"parameters": {"temperature": "0.5"}})


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert ConversationIn.model_validate({"parameters": {"seed": 16.0}}).parameters.seed == 16


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return api.get_openapi_schema()


@pytest.mark.parametrize(
    ("body", "is_right"),
    [
        ({"action": "tag"}, False),
        ({"action": "untag", "tag": None}, False),
        ({"action": "tag", "tag": "work"}, True),
        ({"action": "pin"}, True),
    ],
)
def test_a_tag_is_asked_for_where_it_is_needed(
    document: dict[str, Any], body: dict[str, Any], is_right: bool
) -> None:
    schema = document["components"]["schemas"]["BulkIn"]
    whole = body | {"ids": ["0b8f6a3e-7c55-4e0e-9d42-3a1f0c2d4e5f"]}
    assert Draft202012Validator(schema).is_valid(whole) == is_right


def test_a_question_is_not_blank(document: dict[str, Any]) -> None:
    schema = document["components"]["schemas"]["QuestionIn"]["properties"]["text"]
    assert Draft202012Validator(schema).is_valid("Why?")
    assert not Draft202012Validator(schema).is_valid(" \n")


def test_what_python_strips_is_blank_for_every_reader_of_the_document() -> None:
    blanks = [char for char in map(chr, range(0x3100)) if not char.strip()]
    for blank in blanks:
        with pytest.raises(ValidationError):  # pydantic reads patterns as Rust does
            ConversationIn.model_validate({"tags": [blank]})
    assert not any(re.search(SAYS_SOMETHING, blank) for blank in blanks)


@pytest.mark.parametrize("name", ["ConversationIn", "ConversationChange"])
def test_a_tag_is_not_blank(document: dict[str, Any], name: str) -> None:
    schema = document["components"]["schemas"][name]["properties"]["tags"]
    assert Draft202012Validator(schema).is_valid(["work", " a "])
    assert not Draft202012Validator(schema).is_valid(["\t"])


@pytest.mark.parametrize(
    ("groups", "is_right"),
    [
        ("day", True),
        ("day, model", True),
        ("", True),
        ("day,,key", True),
        ("banana", False),
        ("day;key", False),
    ],
)
def test_the_groups_of_a_report_are_named(document: dict[str, Any], groups: str, is_right: bool) -> None:
    parameters = document["paths"]["/api/usage"]["get"]["parameters"]
    (schema,) = (given["schema"] for given in parameters if given["name"] == "group_by")
    assert Draft202012Validator(schema).is_valid(groups) == is_right


CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("name", "body", "is_right"),
    [
        ("CallingMessage", {"role": "assistant", "content": [], "tool_calls": [CALL]}, True),
        ("ResultItem", {"type": "function_call_output", "call_id": "c1", "output": []}, True),
        ("ResultItem", {"type": "function_call_output", "call_id": None, "output": ""}, True),
        ("CallItem", {"type": "function_call", "call_id": None, "name": "find", "arguments": None}, True),
        ("ResultMessage", {"role": "tool", "tool_call_id": None, "content": ""}, True),
        ("ResultMessage", {"role": "tool", "tool_call_id": "c1", "content": []}, False),
        ("Message", {"role": "user", "content": []}, False),
    ],
)
def test_what_a_message_or_an_item_may_leave_unsaid_is_told(
    document: dict[str, Any], name: str, body: dict[str, Any], is_right: bool
) -> None:
    """As the doors take it."""
    whole = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    assert Draft202012Validator(whole).is_valid(body) == is_right
    if name.endswith("Item"):
        assert input_segments([msgspec.convert(body, Item)], None, 100, has_tools=True)
        return
    message = msgspec.convert(body, Message)
    with nullcontext() if is_right else pytest.raises(ApiError):
        segment_of(message, "messages[0]", 100, has_tools=True)
