"""The WebSocket's language: one tagged JSON object per frame, `{"type": ..., ...}`, decoded strictly.

Unknown types and fields are errors (an `error` frame answers, the socket stays open). Offsets and lengths on the wire
count UTF-16 code units, because the page's strings do. Knows no flow: `consumers` maps these to and from events.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias
from uuid import UUID

import msgspec

from chatsite.chat.listing import Listed


class ClientFrame(msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=True):
    """From the page."""


class Hello(ClientFrame, tag="hello", frozen=True):
    """First frame. The server answers `welcome`."""

    protocol: int


class Send(ClientFrame, tag="send", frozen=True):
    """Ask. Without `conversation` a new one is made with `conversation_id` chosen by the server.

    An ordinary send has `parent` = the leaf the page shows (null for the first message); when it is stale the message
    moves to the active leaf. `branch` true keeps `parent` on purpose (edit).
    """

    client_message_id: UUID
    text: str
    conversation: UUID | None = None
    parent: UUID | None = None
    branch: bool = False
    temporary: bool = False


class Regenerate(ClientFrame, tag="regenerate", frozen=True):
    """A new answer beside an old one; the cache is refreshed, not read."""

    client_message_id: UUID
    message: UUID  # the answer to replace, or the user message to answer


class Continue(ClientFrame, tag="continue", frozen=True):
    """Lets an answer that ended for its length go on: a new one beside it, whose first delta is the old text."""

    client_message_id: UUID
    message: UUID


class Stop(ClientFrame, tag="stop", frozen=True):
    generation: UUID


class Attach(ClientFrame, tag="attach", frozen=True):
    """Follow a live or finished generation: a `snapshot`, then what comes after it."""

    generation: UUID
    after: int = 0


class Detach(ClientFrame, tag="detach", frozen=True):
    generation: UUID


class Watch(ClientFrame, tag="watch", frozen=True):
    """Hear `started` notices for this conversation (a second tab follows); null stops watching."""

    conversation: UUID | None


class Warm(ClientFrame, tag="warm", frozen=True):
    """The page opened this conversation or its composer got focus. `draft` is what of the next question stands firm,
    from people who chose to have it read early."""

    conversation: UUID
    draft: str = ""


class Ping(ClientFrame, tag="ping", frozen=True):
    pass


FromClient: TypeAlias = Hello | Send | Regenerate | Continue | Stop | Attach | Detach | Watch | Warm | Ping


class ServerFrame(msgspec.Struct, frozen=True, tag_field="type"):
    """To the page."""


class Welcome(ServerFrame, tag="welcome", frozen=True):
    protocol: int
    model: str
    is_trial_model: bool
    heartbeat_s: float


class AcceptedFrame(ServerFrame, tag="accepted", frozen=True):
    """The message and its queued answer are durable; the page may clear its outbox."""

    client_message_id: UUID
    generation: UUID
    conversation: UUID
    user_message: UUID
    answer: UUID
    parent: UUID | None  # where the message really hangs
    title: str


class QueuedFrame(ServerFrame, tag="queued", frozen=True):
    generation: UUID
    position: int


class PrefillFrame(ServerFrame, tag="prefill", frozen=True):
    generation: UUID
    done: int
    total: int


class DeltaFrame(ServerFrame, tag="delta", frozen=True):
    generation: UUID
    seq: int
    offset: int
    text: str


class SnapshotFrame(ServerFrame, tag="snapshot", frozen=True):
    """The whole text so far; replaces whatever the page shows for this answer. Deltas after `seq` follow."""

    generation: UUID
    answer: UUID
    conversation: UUID
    seq: int
    text: str
    state: str


class DoneFrame(ServerFrame, tag="done", frozen=True):
    """`length` is the length of the whole stored text: a page that counts another one asks for a snapshot."""

    generation: UUID
    state: str  # complete, stopped, failed, interrupted
    finish_reason: str
    length: int
    origin: str  # model, exact, semantic
    model: str
    prompt_tokens: int
    reused_tokens: int
    prefilled_tokens: int
    generated_tokens: int
    trimmed_messages: int  # of the history, left out because it is longer than the model's window
    ttft_ms: float
    queue_ms: float
    prefill_ms: float
    decode_ms: float
    delivery_ms: float
    cache_age_s: int | None = None
    cache_is_stale: bool = False  # past its time, and made anew meanwhile
    error_code: str = ""
    error_message: str = ""
    is_retryable: bool = False


class StartedFrame(ServerFrame, tag="started", frozen=True):
    """Another tab asked in a watched conversation: reload its messages and attach."""

    conversation: UUID
    generation: UUID


class ChangedFrame(ServerFrame, tag="changed", frozen=True):
    """A conversation of this person's changed, in whichever tab or program: what the list shows of it from now on.

    `kind` is asked, answered, changed, reworded, erased, or many, which names none: load the list anew.
    """

    kind: str
    conversation: UUID | None = None
    item: Listed | None = None  # null when it is erased


class ErrorFrame(ServerFrame, tag="error", frozen=True):
    """Something in a client frame could not be done. `client_message_id` or `generation` names it when known."""

    code: str
    message: str
    client_message_id: UUID | None = None
    generation: UUID | None = None
    retry_after_s: float | None = None
    resets_at: datetime | None = None  # of the quota that is used up


class Pong(ServerFrame, tag="pong", frozen=True):
    pass


class Draining(ServerFrame, tag="draining", frozen=True):
    """The server stops soon: reconnect after the close (code 4012)."""


FromServer: TypeAlias = (
    Welcome | AcceptedFrame | QueuedFrame | PrefillFrame | DeltaFrame | SnapshotFrame | DoneFrame
    | StartedFrame | ChangedFrame | ErrorFrame | Pong | Draining
)  # fmt: skip

PROTOCOL = 1
_decoder = msgspec.json.Decoder(FromClient)
_encoder = msgspec.json.Encoder()


def decode(raw: str) -> FromClient:
    """The frame in `raw`. Raises msgspec.DecodeError (or RecursionError for absurd nesting) for anything else."""
    return _decoder.decode(raw)


def encode(frame: FromServer) -> str:
    return _encoder.encode(frame).decode()
