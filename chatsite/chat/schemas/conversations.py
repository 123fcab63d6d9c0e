"""Conversations as the API shows and takes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Field, Schema
from pydantic import ConfigDict

from chatsite.json_types import AS_NUMBER, SAYS_SOMETHING, Flag

MAX_TAGS = 20
MAX_BULK = 200

Title = Annotated[str, Field(max_length=200, description="What the list shows.", examples=["Rivers"])]
Prompt = Annotated[
    str, Field(max_length=50_000, description="What the model is told first.", examples=["Be brief."])
]
Model = Annotated[
    str,
    Field(
        max_length=200,
        description="By which the next answer is made, as `/v1/models` names it; empty: the first one that is served.",
    ),
]
Tag = Annotated[str, Field(max_length=40, pattern=SAYS_SOMETHING, examples=["work"])]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS, description="Words to find it by.")]
Ids = Annotated[list[UUID], Field(min_length=1, max_length=MAX_BULK)]


class Parameters(Schema):
    """Sampling of a conversation; what is left out is the model's choice."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"temperature": 0.2, "max_tokens": 500}}
    )

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False), AS_NUMBER] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), AS_NUMBER] | None = None
    top_k: Annotated[int, Field(ge=0, le=1_000_000), AS_NUMBER] | None = None
    min_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), AS_NUMBER] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False), AS_NUMBER] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False), AS_NUMBER] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False), AS_NUMBER] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63), AS_NUMBER] | None = None
    stop: (
        Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=16)] | None
    ) = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000), AS_NUMBER] | None = None


class ConversationIn(Schema):
    """A new conversation; everything may be left out."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"title": "Rivers", "system_prompt": "Be brief.", "tags": ["geography"]}
        },
    )

    title: Title = ""
    system_prompt: Prompt = ""
    parameters: Parameters = Field(default_factory=Parameters)
    model: Model = ""
    tags: Tags = Field(default_factory=list)
    is_temporary: Flag = Field(
        default=False, description="Stays out of the list, the search and the cache; gone within a day."
    )
    client_message_id: UUID | None = Field(
        default=None,
        description="Of the first message, which on the socket finds this conversation without naming it. "
        "Sent again, nothing is made or changed.",
    )


class ConversationChange(Schema):
    """Only the fields that are given change."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"title": "Great rivers", "is_pinned": True}}
    )

    title: Title | None = None
    is_pinned: Flag | None = None
    is_archived: Flag | None = None
    system_prompt: Prompt | None = None
    parameters: Parameters | None = None
    model: Model | None = None
    tags: Tags | None = None
    active_leaf: UUID | None = Field(
        default=None, description="The last answer of the branch that is shown from now on."
    )


class ConversationItem(Schema):
    """One line of the list."""

    id: UUID
    title: str
    tags: list[str]
    created_at: datetime
    updated_at: datetime
    is_pinned: bool
    is_archived: bool
    is_answering: bool = Field(description="Whether an answer in it is being made.")


class ConversationPage(Schema):
    items: list[ConversationItem]
    next: str | None = Field(description="The `cursor` of the next page; null on the last one.")
    num_found: int | None = Field(
        description="On the first page of a search: how many there are, counted up to 1,000."
    )


class TagItem(Schema):
    tag: str = Field(examples=["work"])
    num_conversations: int


class TagList(Schema):
    items: list[TagItem]


class ConversationOut(ConversationItem):
    """A conversation without its messages; the page shows the branch that ends at `active_leaf`."""

    is_temporary: bool
    system_prompt: str
    parameters: dict[str, Any]
    model: Model
    active_leaf: UUID | None = Field(validation_alias="active_leaf_id")
    num_messages: int


class BulkIn(Schema):
    """One action on up to 200 conversations: all of them, or none where one is not yours."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"action": "tag", "ids": ["6f2f3c5e-3f0d-4f0e-9a53-9d9a3f4f4b1e"], "tag": "work"},
            "if": {"properties": {"action": {"enum": ["tag", "untag"]}}},
            "then": {"properties": {"tag": {"type": "string"}}, "required": ["tag"]},
        },
    )

    action: Literal["archive", "unarchive", "pin", "unpin", "tag", "untag", "delete"]
    ids: Ids
    tag: Tag | None = Field(default=None, description="For `tag` and `untag`.")


class BulkOut(Schema):
    num_changed: int = Field(description="How many different conversations there were among the ids.")
    receipt: UUID | None = Field(description="Of an erasure: `/api/receipts/{receipt}` tells how far it is.")
