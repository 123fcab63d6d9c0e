"""Messages, answers and what is known of their making, as the API shows and takes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from ninja import Field, Schema
from pydantic import ConfigDict

from chatsite.json_types import SAYS_SOMETHING

MAX_WAIT_S = 300

QuestionText = Annotated[
    str,
    Field(
        description="Not blank; at most CHAT_MAX_MESSAGE_CHARS characters.",
        json_schema_extra={"pattern": SAYS_SOMETHING},
    ),
]


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
    """One message. Texts never change: another wording is another message under the same parent."""

    id: UUID
    parent: UUID | None
    role: str
    text: str
    state: str
    created_at: datetime
    variants: list[UUID] = Field(
        description="All messages under the same parent in the order of their making, this one among them."
    )
    feedback: str | None
    generation: GenerationOut | None


class MessagePage(Schema):
    """Neighbouring messages, oldest first."""

    items: list[MessageOut]
    before: UUID | None = Field(description="Ask with this `before` for what comes above; null at the top.")
    after: UUID | None = Field(description="Ask with this `after` for what comes below; null at the end.")


class QuestionIn(Schema):
    """A question. `parent` is the answer it follows: left out it is the end of the active branch, null begins anew."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "client_message_id": "0b6f4e58-5a0c-4a39-9b12-2f5c3d1d7a11",
                "text": "Which river is the longest?",
            }
        },
    )

    client_message_id: UUID = Field(
        description="Made by you, once per message: sent again, the same message is found, not another one made."
    )
    text: QuestionText
    parent: UUID | None = None


class AgainIn(Schema):
    """Another answer."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"client_message_id": "5d0c7d0e-6a57-4d1e-8f0e-0f7d5f1f9c21"}},
    )

    client_message_id: UUID = Field(description="Made by you, once per wish.")


class RewordIn(Schema):
    """A question in other words."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "client_message_id": "9b2f3b54-58b0-4d5c-8a31-2f0e1d9c7a45",
                "text": "Which river in Asia is the longest?",
            }
        },
    )

    client_message_id: UUID = Field(
        description="Made by you, once per version: sent again, the same version is found."
    )
    text: QuestionText


class AskedOut(Schema):
    """A question with its answer, which is whole when its `state` says so; else follow the generation."""

    conversation: UUID
    title: str = Field(description="The conversation's, which its first question gave it.")
    question: MessageOut
    answer: MessageOut
    events: str = Field(description="The answer as server-sent events.")


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


class FeedbackIn(Schema):
    """What somebody thinks of an answer."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"verdict": "down", "reason": "The Nile is not in Asia."}},
    )

    verdict: Literal["up", "down"]
    reason: Annotated[str, Field(max_length=500)] = ""
