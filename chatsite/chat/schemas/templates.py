"""Prompt templates as the API shows and takes them."""

from __future__ import annotations

from typing import Annotated

from ninja import Field, Schema
from pydantic import ConfigDict
from pydantic.config import JsonDict

from chatsite.json_types import Flag

Title = Annotated[str, Field(min_length=1, max_length=120, examples=["Translate"])]
Body = Annotated[
    str,
    Field(
        min_length=1,
        max_length=20_000,
        description="The text; `{{name}}` is a variable.",
        examples=["Translate into {{language}}: {{text}}"],
    ),
]
Language = Annotated[
    str, Field(min_length=2, max_length=16, pattern="^[A-Za-z]+(-[A-Za-z0-9]+)*$", examples=["en"])
]
EXAMPLE: JsonDict = {"title": "Translate", "body": "Translate into {{language}}: {{text}}", "language": "en"}

EXAMPLE_USE: JsonDict = {"example": {"values": {"language": "French"}}}


class TemplateOut(Schema):
    id: int
    title: str
    body: str
    variables: list[str] = Field(description="The names in the body, in order.")
    language: str
    is_starter: bool
    is_shared: bool = Field(description="Everybody's; only staff changes it.")
    use_count: int


class TemplateIn(Schema):
    """A new template."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": EXAMPLE})

    title: Title
    body: Body
    language: Language = "en"
    is_starter: Flag = Field(default=False, description="Offered when a conversation begins.")
    is_shared: Flag = Field(default=False, description="For everybody; staff only.")


class TemplateChange(Schema):
    """Only the fields that are given change."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"is_starter": True}})

    title: Title | None = None
    body: Body | None = None
    language: Language | None = None
    is_starter: Flag | None = None


class UseIn(Schema):
    """Values of variables; those that are left out stay in the text."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=EXAMPLE_USE)

    values: Annotated[dict[str, Annotated[str, Field(max_length=200_000)]], Field(max_length=50)] = Field(
        default_factory=dict
    )


class UsedOut(Schema):
    text: str
    missing: list[str] = Field(description="Variables that still stand in the text.")
