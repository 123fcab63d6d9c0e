"""What the front and the core say to each other over their pipe.

One packed message per direction and step: the front sends `Inbox`, the core sends `StepPack`. Frames are a
4-byte little-endian length followed by msgpack. Knows no sockets and no torch.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

import msgspec

from inference.types import FinishReason, Grammar

FRAME_HEADER = struct.Struct("<I")
# A frame past this is corruption, not a message: the longest prompt (10 M ids) packs below it.
MAX_FRAME_BYTES = 64 * 1024 * 1024
OWN_ENDS = frozenset({FinishReason.STOP, FinishReason.LENGTH, FinishReason.REPETITION})


class SamplingSpec(msgspec.Struct, frozen=True, array_like=True):
    """Fully resolved sampling of one sequence: no optional values are left."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # 0: off
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0
    logprobs: int = -1  # -1: none
    min_tokens: int = 0
    logit_bias: list[tuple[int, float]] = []
    grammar: Grammar | None = None
    speculate: bool | None = None  # drafts; None: as the core thinks best


class Vocabulary(msgspec.Struct, frozen=True, tag="vocabulary"):
    """The bytes of every token, by id, for the grammars of answers; sent before the first request that has one.

    Control tokens are in no text. The ends are the model's own.
    """

    tokens: list[bytes]
    control_ids: list[int]
    end_ids: list[int]


class Admit(msgspec.Struct, frozen=True, tag="admit"):
    """Start a sequence. `max_tokens` 0 only prefills (warm-up)."""

    id: str
    prompt_ids: list[int]
    sampling: SamplingSpec
    max_tokens: int
    stop_ids: list[int]
    salt: bytes  # of (tenant, user); part of every block key
    conversation: bytes  # key of the conversation head; empty: keep no head
    priority: int = 0
    is_background: bool = False  # warm-up: lowest priority, first to be preempted
    is_offline: bool = False  # bulk work: fills what interactive sequences leave free


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """End a sequence. KV stays usable for prompt + `keep_tokens` generated tokens (-1: all of them)."""

    id: str
    reason: str  # the finish reason to report
    keep_tokens: int = -1

    @property
    def is_own_end(self) -> bool:
        """The front saw the answer end in its text (a stop string, a circle): nobody cancelled it."""
        return self.reason in OWN_ENDS


class Forget(msgspec.Struct, frozen=True, tag="forget"):
    """Drop everything a conversation left behind: heads of all branches, blocks only it reached, its disk copies.

    With a salt instead: everything that its user left in memory, whatever conversation it belongs to, or none.
    """

    conversation: bytes
    salt: bytes = b""


class DeclaredPrefix(msgspec.Struct, frozen=True, array_like=True):
    name: str
    token_ids: list[int]


class SharePrefixes(msgspec.Struct, frozen=True, tag="share"):
    """The prefixes that users may share; replaces what was declared before. Each turns on by measured overlap."""

    prefixes: list[DeclaredPrefix]


class EmbedTexts(msgspec.Struct, frozen=True, tag="embed"):
    id: str
    token_ids: list[list[int]]


class VerifyPairs(msgspec.Struct, frozen=True, tag="verify"):
    id: str
    token_ids: list[list[int]]


Command: TypeAlias = Vocabulary | Admit | Cancel | Forget | SharePrefixes | EmbedTexts | VerifyPairs


class Inbox(msgspec.Struct, frozen=True):
    commands: list[Command]


class TokenOut(msgspec.Struct, frozen=True, array_like=True):
    """One sampled token. `top` holds (id, logprob) alternatives when they were asked for."""

    id: str
    token: int
    logprob: float = 0.0
    top: list[tuple[int, float]] = []


class PrefillProgress(msgspec.Struct, frozen=True, array_like=True):
    id: str
    done: int
    total: int


class FinishedOut(msgspec.Struct, frozen=True):
    """A sequence has left the batch and its blocks are released. No token of it follows."""

    id: str
    reason: str  # FinishReason value
    error: str = ""
    prompt_tokens: int = 0
    reused_head_tokens: int = 0
    reused_prefix_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    peak_kv_bytes: int = 0
    block_seconds: float = 0.0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    reused_shared_tokens: int = 0
    reused_disk_tokens: int = 0
    device_seconds: float = 0.0

    @property
    def reused_tokens(self) -> int:
        return (
            self.reused_head_tokens
            + self.reused_prefix_tokens
            + self.reused_shared_tokens
            + self.reused_disk_tokens
        )


class Embedded(msgspec.Struct, frozen=True):
    """Vectors of one EmbedTexts, (num_texts, dim) float32 little-endian, row by row, L2-normalised."""

    id: str
    dim: int
    vectors: bytes
    error: str = ""


class Verified(msgspec.Struct, frozen=True):
    id: str
    scores: list[float]
    error: str = ""


class PrefixReport(msgspec.Struct, frozen=True, array_like=True):
    """A declared prefix: share of recent prompts that begin with it, and whether users share its KV now."""

    name: str
    num_tokens: int
    overlap: float
    is_shared: bool


class CoreStats(msgspec.Struct, frozen=True):
    """Counters since the core started, and gauges of now. Meanings are those of StatsReply in engine.proto."""

    steps: int = 0
    decode_forwards: int = 0
    running: int = 0
    waiting: int = 0
    waiting_tokens: int = 0
    prompt_tokens: int = 0
    reused_head_tokens: int = 0
    reused_prefix_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    preemptions: int = 0
    evicted_blocks: int = 0
    cancelled: int = 0
    blocks_total: int = 0
    blocks_used: int = 0
    blocks_cached: int = 0
    blocks_free: int = 0
    embedded_texts: int = 0
    step_seconds_sum: float = 0.0
    forgotten_blocks: int = 0
    leak_alarms: int = 0  # times the KV blocks did not add up
    reused_shared_tokens: int = 0
    reused_disk_tokens: int = 0
    blocks_closed: int = 0
    blocks_superseded: int = 0
    blocks_stale: int = 0
    blocks_idle: int = 0
    blocks_active: int = 0
    blocks_shared: int = 0
    kv_budget_bytes: int = 0
    kv_committed_bytes: int = 0
    kv_slack: float = 0.0
    disk_blocks: int = 0
    disk_bytes: int = 0
    disk_written_blocks: int = 0
    disk_restored_blocks: int = 0
    disk_refused_blocks: int = 0
    prefill_tokens_per_s: float = 0.0
    restore_bytes_per_s: float = 0.0
    verified_pairs: int = 0
    lane_batches: int = 0
    waiting_offline: int = 0
    step_target_tokens: float = 0.0
    waiting_for_seats: int = 0
    waiting_for_blocks: int = 0
    device_bytes: int = 0
    disk_skipped_blocks: int = 0
    device_seconds: float = 0.0
    background_prompt_tokens: int = 0
    background_reused_tokens: int = 0
    background_prefilled_tokens: int = 0
    background_generated_tokens: int = 0
    background_device_seconds: float = 0.0
    warmed_tokens: int = 0
    warmed_used_tokens: int = 0
    warmed_wasted_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    shared_prefixes: list[PrefixReport] = []


class CoreReady(msgspec.Struct, frozen=True, tag="ready"):
    """Sent once, when the model is loaded and warm."""

    revision: str
    max_context: int
    dtype: str
    device: str
    kv_bytes_per_token: int
    block_tokens: int
    blocks_total: int
    embedder: str = ""
    embedding_dim: int = 0
    embed_prefix: str = ""  # goes before every text that is embedded
    embed_max_tokens: int = 512
    supports_verify: bool = False
    verifier: str = ""  # tag
    verify_max_tokens: int = 512
    kv_budget_bytes: int = 0
    has_grammar: bool = True  # answers are held to grammars


class StepPack(msgspec.Struct, frozen=True, tag="step"):
    """Everything one step has to say. Queue positions are (id, number of sequences ahead)."""

    tokens: list[TokenOut] = []
    progress: list[PrefillProgress] = []
    finished: list[FinishedOut] = []
    positions: list[tuple[str, int]] = []
    embedded: list[Embedded] = []
    verified: list[Verified] = []
    stats: CoreStats = CoreStats()


class LoadProgress(msgspec.Struct, frozen=True, tag="loading"):
    """A line for people while the core starts."""

    text: str


FromCore: TypeAlias = CoreReady | StepPack | LoadProgress

_encoder = msgspec.msgpack.Encoder()
_inbox_decoder = msgspec.msgpack.Decoder(Inbox)
_from_core_decoder = msgspec.msgpack.Decoder(FromCore)


def pack(message: Inbox | FromCore) -> bytes:
    """One frame, header included."""
    body = _encoder.encode(message)
    return FRAME_HEADER.pack(len(body)) + body


def unpack_inbox(body: bytes) -> Inbox:
    """Raises msgspec.DecodeError for anything that is not an Inbox."""
    return _inbox_decoder.decode(body)


def unpack_from_core(body: bytes) -> FromCore:
    """Raises msgspec.DecodeError for anything a core does not say."""
    return _from_core_decoder.decode(body)
