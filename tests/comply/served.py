"""Our OpenAPI document as it is true of one site: models by their names, rows by the ids of those that are there.

What the product's document must leave open, generated requests would only guess wrongly. Knows schemas; how rows are
made is `rows`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from tests.site.conftest import PASSWORD

Document = dict[str, Any]
NUM_DIMENSIONS = 384
MAX_TOKEN = 258  # ids above it are not the scripted vocabulary's
TOKEN = {"type": "integer", "minimum": 0, "maximum": MAX_TOKEN}
TOKEN_NAME = {"pattern": "^(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-8])$"}
# They name what must lie in the conversation that is asked about, or was told by the answer before: tests/chat does it.
LEFT_OUT = {"cursor", "before", "after", "around", "branch", "active_leaf", "parent"}
# Rows by the schema of a body and the field that names them; of paths the parameters' own names say it.
NAMED = {
    "BulkIn": {"ids": "conversation"},
    "ActIn": {"ids": "entry_id"},
    "OrderIn": {"ids": "every_rule"},
    "CaseIn": {"entry": "entry_id"},
    "CompareIn": {"entry": "entry_id"},
    "EvictIn": {"rule": "rule_id"},
    "RunIn": {"ids": "case_id"},
    "DryRunIn": {"rule": "rule_id"},
    "MultiPartBodyParams": {"rule": "rule_id"},
}


def operations(document: Mapping[str, Any]) -> Iterator[str]:
    """Method and path of each, as schemathesis names them."""
    for path, item in document["paths"].items():
        yield from (f"{method.upper()} {path}" for method in item)


def row_names(document: Mapping[str, Any], operation: str) -> set[str]:
    """What kinds of rows the requests of one operation name."""
    method, path = operation.split()
    described = document["paths"][path][method.lower()]
    in_path = {given["name"] for given in described.get("parameters", ()) if given["in"] == "path"}
    return in_path | {row for _, name in _bodies(described) for row in NAMED.get(name, {}).values()}


def served(
    document: Mapping[str, Any],
    chosen: Sequence[str],
    models: tuple[str, str],
    rows: Mapping[str, Sequence[Any]],
) -> Document:
    """A copy of `document` with the paths of `chosen` alone, in which names are those of `models` and `rows`."""
    told = deepcopy(dict(document))
    # All methods of a path: those that it has not are tried, too.
    paths = {operation.split()[1] for operation in chosen}
    told["paths"] = {path: item for path, item in told["paths"].items() if path in paths}
    schemas = told["components"]["schemas"]
    for described in (described for item in told["paths"].values() for described in item.values()):
        described["parameters"] = [
            _named(given, {"name": models} | rows)
            for given in described.get("parameters", ())
            if given["name"] not in LEFT_OUT
        ]
        for media, name in _bodies(described):
            _name_rows(media, schemas.get(name, media["schema"]), NAMED.get(name, {}), rows)
            if name == "EraseMe":
                media["example"] = {"password": PASSWORD}
    for name in ("ConversationChange", "QuestionIn"):
        for field in LEFT_OUT & set(schemas[name]["properties"]):
            del schemas[name]["properties"][field]
    # Whoever has a password must give it; wrong ones are few, or the brake is on: so the right one is given at first.
    schemas["EraseMe"]["properties"]["password"] = {"enum": [PASSWORD]}
    _name_models(told, *models)
    return told


def _bodies(described: Document) -> Iterator[tuple[Document, str]]:
    """The media of an operation's body, with the name of its schema."""
    for media in described.get("requestBody", {}).get("content", {}).values():
        schema = media["schema"]
        yield media, schema.get("title", schema.get("$ref", "").rsplit("/", 1)[-1])


def _named(given: Document, rows: Mapping[str, Sequence[Any]]) -> Document:
    if given["in"] != "path" or given["name"] not in rows:
        return given
    return {key: given[key] for key in ("in", "name", "required")} | {
        "schema": {"enum": list(rows[given["name"]])}
    }


def _name_rows(
    media: Document, schema: Document, fields: Mapping[str, str], rows: Mapping[str, Sequence[Any]]
) -> None:
    for field, row in fields.items():
        if row not in rows:
            continue
        given = schema["properties"][field]
        lists = [option for option in given.get("anyOf", (given,)) if option.get("type") == "array"]
        is_list = bool(lists)
        if is_list and row != "every_rule":
            lists[0]["items"] = {"enum": list(rows[row])}
        else:
            may_be_null = {"type": "null"} in given.get("anyOf", ())
            schema["properties"][field] = {"enum": [*rows[row], *([None] if may_be_null else ())]}
        # The examples name other rows.
        one = rows[row][-1]
        for example in (
            holder["example"] for holder in (media, schema) if field in holder.get("example", ())
        ):
            example[field] = [one] if is_list and row != "every_rule" else one


def _name_models(told: Document, chat: str, embedder: str) -> None:
    schemas = told["components"]["schemas"]
    for name in ("ChatRequest", "CompletionRequest", "ResponsesRequest"):
        fields = schemas[name]["properties"]
        fields["model"] = {"enum": [chat]}
        fields["stop_token_ids"]["anyOf"][0] = {"type": "array", "items": TOKEN, "maxItems": 16}
        fields["logit_bias"]["anyOf"][0]["propertyNames"] = TOKEN_NAME
    # Of a conversation: empty stands for the first one that is served, and of a change null for the one that it has.
    schemas["ConversationIn"]["properties"]["model"] = {"enum": ["", chat]}
    schemas["ConversationChange"]["properties"]["model"] = {"enum": ["", chat, None]}
    schemas["EmbeddingsRequest"]["properties"] |= {
        "model": {"enum": [embedder]},
        "dimensions": {"enum": [NUM_DIMENSIONS, None]},
    }
    for path, item in told["paths"].items():
        for media, _ in _bodies(item.get("post", {})):
            if path.startswith("/v1/"):
                media["example"]["model"] = embedder if path.endswith("/embeddings") else chat
