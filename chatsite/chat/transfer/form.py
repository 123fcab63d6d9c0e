"""Our own file of conversations: its shape as types, so that reading it says where and why something is wrong.

Messages are numbered within their conversation, each after its parent, so a file names nobody's ids, and what was
imported is exported as the same file. Knows no rows.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

FORMAT: Final = "rill-conversations"
VERSION: Final = 1
MAX_CONVERSATIONS = 10_000
MAX_MESSAGES = 100_000  # of one conversation
MAX_TEXT_CHARS = 1_000_000

Title = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
Moment = Annotated[datetime, Meta(tz=True)]
Ended = Literal["complete", "stopped", "failed", "interrupted"]
Number = Annotated[int, Meta(ge=1)]


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The owner's thumb on an answer."""

    verdict: Literal["up", "down"]
    reason: Annotated[str, Meta(max_length=500)] = ""


class Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By what an answer was made, and why it ended."""

    model: Annotated[str, Meta(max_length=200)] = ""
    origin: Literal["model", "exact", "semantic"] = "model"
    finish_reason: Annotated[str, Meta(max_length=32)] = ""


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One message. `number` is its own; `parent` an earlier one of the other side, or null for a beginning."""

    number: Number
    parent: Number | None
    role: Literal["user", "assistant"]
    text: Text
    created_at: Moment
    state: Ended = "complete"
    made: Made | None = None
    feedback: Said | None = None


class Talk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One conversation with all its branches; `active` is the last message of the one that is shown."""

    title: Title
    created_at: Moment
    updated_at: Moment
    messages: Annotated[list[Turn], Meta(max_length=MAX_MESSAGES)]
    active: Number | None = None
    system_prompt: Annotated[str, Meta(max_length=50_000)] = ""
    parameters: dict[str, Any] = {}
    model: Annotated[str, Meta(max_length=200)] = ""
    tags: Annotated[list[Annotated[str, Meta(min_length=1, max_length=40)]], Meta(max_length=20)] = []
    is_pinned: bool = False
    is_archived: bool = False


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    format: Literal["rill-conversations"]
    version: Literal[1]
    conversations: Annotated[list[Talk], Meta(max_length=MAX_CONVERSATIONS)]
