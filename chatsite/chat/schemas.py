"""The JSON of the page's API: what goes out and what may come in. Unknown fields are errors."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Field, Schema
from pydantic import ConfigDict

Title = Annotated[str, Field(max_length=200)]
Prompt = Annotated[str, Field(max_length=50_000)]


class ConversationItem(Schema):
    """One line of the list."""

    id: UUID
    title: str
    updated_at: datetime
    is_pinned: bool
    is_archived: bool


class ConversationPage(Schema):
    items: list[ConversationItem]
    next: str | None


class GenerationOut(Schema):
    """How an answer was made."""

    id: UUID
    state: str
    finish_reason: str
    origin: str
    model: str
    cache_age_s: int | None
    cache_is_stale: bool
    prompt_tokens: int
    reused_tokens: int
    prefilled_tokens: int
    generated_tokens: int
    trimmed_messages: int
    queue_ms: float
    prefill_ms: float
    decode_ms: float
    ttft_ms: float
    error_code: str
    is_retryable: bool


class MessageOut(Schema):
    id: UUID
    parent: UUID | None
    role: str
    text: str
    state: str
    created_at: datetime
    feedback: str | None
    generation: GenerationOut | None


class ConversationOut(Schema):
    """A conversation with the messages of all its branches; the page shows the path to `active_leaf`."""

    id: UUID
    title: str
    system_prompt: str
    parameters: dict[str, Any]
    active_leaf: UUID | None
    is_pinned: bool
    is_archived: bool
    is_temporary: bool
    messages: list[MessageOut]


class SnapshotOut(Schema):
    """An answer so far, for clients that poll. `text` is null when there is nothing after `after`."""

    id: UUID
    generation: UUID | None
    state: str
    seq: int
    text: str | None


class CancelOut(Schema):
    id: UUID
    state: str


class Parameters(Schema):
    """Sampling of a conversation; what is left out is the model's choice."""

    model_config = ConfigDict(extra="forbid")

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    top_k: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    stop: (
        Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=16)] | None
    ) = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class ConversationChange(Schema):
    """Only the fields that are given change."""

    model_config = ConfigDict(extra="forbid")

    title: Title | None = None
    is_pinned: bool | None = None
    is_archived: bool | None = None
    system_prompt: Prompt | None = None
    parameters: Parameters | None = None
    active_leaf: UUID | None = None


class FeedbackIn(Schema):
    """What somebody thinks of an answer."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["up", "down"]
    reason: Annotated[str, Field(max_length=500)] = ""
