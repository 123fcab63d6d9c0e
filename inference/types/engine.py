"""What the engine says about itself: what it serves, and its numbers."""

from __future__ import annotations

from dataclasses import dataclass


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
    warmed_tokens: int = 0
    warmed_used_tokens: int = 0
    warmed_wasted_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
