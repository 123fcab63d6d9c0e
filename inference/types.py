"""What callers of the engine say and hear: requests and events as plain immutable values.

Knows no transport and no model. `inference.client` turns these into protobuf and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class FinishReason(StrEnum):
    """Why a generation ended. Finished generations never change their reason."""

    STOP = "stop"  # end-of-sequence token or stop string
    LENGTH = "length"  # max_tokens or the end of the window
    REPETITION = "repetition"  # the answer went round in circles
    CANCELLED = "cancelled"  # somebody asked for it
    ORPHANED = "orphaned"  # nobody was attached for orphan_ttl
    FAILED = "failed"  # the engine could not go on; `Done.error_code` says why


# The role of a segment that is a prompt by itself: no template writes around it, and its text may name control tokens.
RAW = "raw"


@dataclass(frozen=True, slots=True)
class Segment:
    """One message of the history, or alone and as RAW a whole prompt.

    `token_ids` is the ledger: the ids of an assistant message as generated. `tool_calls` is a JSON list of
    {id, name, arguments} that an assistant message made; `tool_call_id` names the call whose result a tool message is.
    """

    role: str
    text: str
    token_ids: tuple[int, ...] = ()
    tokenizer: str = ""
    tool_calls: str = ""
    tool_call_id: str = ""


# Kinds of grammars.
JSON_OBJECT, JSON_SCHEMA, LARK = "json_object", "json_schema", "lark"


@dataclass(frozen=True, slots=True)
class Grammar:
    """What an answer must look like: any JSON object, JSON that a schema allows, or texts of a Lark grammar."""

    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling of one request; None leaves the choice to the model's own defaults."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    logprobs: int | None = None
    min_tokens: int | None = None
    logit_bias: tuple[tuple[int, float], ...] = ()
    stop_ids: tuple[int, ...] = ()
    grammar: Grammar | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose KV this is, as opaque strings. KV is shared only inside equal (tenant, user)."""

    tenant: str
    user: str
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One answer to make. `generation_id` is a UUID made by the caller; submitting it twice starts one generation."""

    generation_id: str
    segments: tuple[Segment, ...]
    owner: Owner
    sampling: Sampling = field(default_factory=Sampling)
    priority: int = 0
    deadline_s: float = 0.0
    is_offline: bool = False
    may_trim: bool = False
    # A JSON list of functions as the template is given them; tool_choice is auto (also ""), none, required or a name.
    tools: str = ""
    tool_choice: str = ""
    # The last segment is an answer that goes on: what is made comes right behind its last token.
    continues_answer: bool = False


@dataclass(frozen=True, slots=True)
class Submitted:
    """`trimmed_messages`: so many of the oldest were left out, because the history is longer than the window."""

    engine: str
    prompt_tokens: int
    trimmed_messages: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts by source. prompt = reused (of all sources) + prefilled, once it was read.

    `generated_tokens` have text that was looked at; `unseen_tokens` were made beside them: end tokens, and what was
    under way when the answer ended.
    """

    prompt_tokens: int = 0
    reused_head_tokens: int = 0
    reused_prefix_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    peak_kv_bytes: int = 0
    block_seconds: float = 0.0
    reused_shared_tokens: int = 0
    reused_disk_tokens: int = 0
    trimmed_messages: int = 0
    device_seconds: float = 0.0
    unseen_tokens: int = 0

    @property
    def reused_tokens(self) -> int:
        return (
            self.reused_head_tokens
            + self.reused_prefix_tokens
            + self.reused_shared_tokens
            + self.reused_disk_tokens
        )


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds, measured by the engine's monotonic clock. ttft_s runs from acceptance to the first delta."""

    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    ttft_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Queued:
    """Progress, not logged: `position` sequences are ahead."""

    position: int
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Prefill:
    """Progress, not logged: `done` of `total` prompt tokens are in KV."""

    done: int
    total: int
    seq: int = 0


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Natural log-probability of one token by the model itself, before penalties and temperature; `token` is its
    raw bytes, which need not be whole characters. `top` are the likeliest alternatives, best first."""

    token_id: int
    token: bytes
    logprob: float
    top: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """Whole characters, in order; `token_ids` are the ids whose text this is, `logprobs` theirs when asked for."""

    seq: int
    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of every accepted generation."""

    seq: int
    finish_reason: FinishReason
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    error_code: str = ""
    error_message: str = ""


Event = Queued | Prefill | Delta | Done


@dataclass(frozen=True, slots=True)
class TemplateFindings:
    """What the probe of the chat template found; field meanings are those of Template in engine.proto."""

    is_append_only: bool = True
    strips_thinking: bool = False
    has_date: bool = False
    has_default_system: bool = False
    is_followed: bool = True


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine serves. `revision` changes with weights, tokenizer, template or precision."""

    engine: str
    model: str
    revision: str
    tokenizer: str
    max_context: int
    max_output_tokens: int
    dtype: str
    device: str
    embedder: str
    embedding_dim: int
    kv_bytes_per_token: int
    is_trial_model: bool
    default_temperature: float
    template: TemplateFindings = TemplateFindings()
    policy: str = ""
    block_tokens: int = 0
    kv_budget_bytes: int = 0
    verifier: str = ""
    upstream: str = ""
    tool_format: str = ""
    has_grammar: bool = False


@dataclass(frozen=True, slots=True)
class SharedPrefixStats:
    """A prefix that the operator declared, and how much of recent traffic begins with it."""

    name: str
    num_tokens: int
    overlap: float
    is_shared: bool


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Counters and gauges of one engine; field names and meanings are those of StatsReply in engine.proto."""

    is_ready: bool
    reason: str
    steps: int
    decode_forwards: int
    running: int
    waiting: int
    waiting_tokens: int
    prompt_tokens: int
    reused_head_tokens: int
    reused_prefix_tokens: int
    prefilled_tokens: int
    generated_tokens: int
    preemptions: int
    evicted_blocks: int
    cancelled: int
    refused: int
    blocks_total: int
    blocks_used: int
    blocks_cached: int
    blocks_free: int
    embedded_texts: int
    ledger_fallbacks: int
    step_seconds_sum: float
    core_restarts: int
    live_logs: int
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
    repetitions: int = 0
    trimmed_requests: int = 0
    canonicalised: int = 0
    leak_alarms: int = 0
    shared_prefixes: tuple[SharedPrefixStats, ...] = ()
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
