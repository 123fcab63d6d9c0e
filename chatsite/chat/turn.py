"""One question on its way through `reply`: who asks, what the model is given, what may be cached, what is stored.

Plain values made by the doors (`consumers`, the REST API) and read by `reply`. Knows no flow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from inference.types import Owner, Sampling, Segment

if TYPE_CHECKING:
    from chatsite.accounts.quotas.standing import Standing


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `owner` is the opaque scope of everything private: cache entries, KV, quotas."""

    user_id: int
    tenant: str
    api_key: UUID | None = None
    is_guest: bool = False

    @property
    def owner(self) -> str:
        return f"user:{self.user_id}"


@dataclass(frozen=True, slots=True)
class CacheControl:
    """What the caller wants of the semantic cache; rules may still say no."""

    may_read: bool = True
    may_store: bool = True
    only_if_cached: bool = False


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """Rows of a conversation turn that were committed before anything was answered."""

    conversation: UUID
    user_message: UUID
    answer: UUID


@dataclass(frozen=True, slots=True)
class Turn:
    """One accepted question. `stored` is None for `/v1`, which keeps no text.

    `conversation` keys the kept KV inside (tenant, owner); empty keeps none.
    """

    caller: Caller
    generation: UUID
    segments: tuple[Segment, ...]
    model: str = ""  # by which it is asked to be answered; empty: the first one that is served
    sampling: Sampling = field(default_factory=Sampling)
    conversation: str = ""
    cache: CacheControl = field(default_factory=CacheControl)
    stored: StoredTurn | None = None
    priority: int = 0
    is_offline: bool = False  # bulk work: fills what interactive questions leave free
    # A history that is longer than the model's window loses its oldest turns instead of being refused.
    may_trim: bool = True
    # Functions that the model may call, and whether it must, as `GenerateRequest` has them.
    tools: str = ""
    tool_choice: str = ""
    # The answer so far, behind which it goes on.
    begun: Segment | None = None
    # How the caller's quotas stood when this was counted; None before that.
    standings: tuple[Standing, ...] | None = None

    @property
    def kv_owner(self) -> Owner:
        return Owner(self.caller.tenant, self.caller.owner, self.conversation)
