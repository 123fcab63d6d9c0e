from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Segment(_message.Message):
    __slots__ = ("role", "text", "token_ids", "tokenizer", "tool_calls", "tool_call_id")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    role: str
    text: str
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    tokenizer: str
    tool_calls: str
    tool_call_id: str
    def __init__(self, role: _Optional[str] = ..., text: _Optional[str] = ..., token_ids: _Optional[_Iterable[int]] = ..., tokenizer: _Optional[str] = ..., tool_calls: _Optional[str] = ..., tool_call_id: _Optional[str] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "seed", "stop", "max_tokens", "logprobs", "min_tokens", "logit_bias", "stop_ids", "grammar", "speculate")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    MIN_P_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_PENALTY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOGIT_BIAS_FIELD_NUMBER: _ClassVar[int]
    STOP_IDS_FIELD_NUMBER: _ClassVar[int]
    GRAMMAR_FIELD_NUMBER: _ClassVar[int]
    SPECULATE_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    seed: int
    stop: _containers.RepeatedScalarFieldContainer[str]
    max_tokens: int
    logprobs: int
    min_tokens: int
    logit_bias: _containers.RepeatedCompositeFieldContainer[LogitBias]
    stop_ids: _containers.RepeatedScalarFieldContainer[int]
    grammar: Grammar
    speculate: bool
    def __init__(self, temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_k: _Optional[int] = ..., min_p: _Optional[float] = ..., repetition_penalty: _Optional[float] = ..., presence_penalty: _Optional[float] = ..., frequency_penalty: _Optional[float] = ..., seed: _Optional[int] = ..., stop: _Optional[_Iterable[str]] = ..., max_tokens: _Optional[int] = ..., logprobs: _Optional[int] = ..., min_tokens: _Optional[int] = ..., logit_bias: _Optional[_Iterable[_Union[LogitBias, _Mapping]]] = ..., stop_ids: _Optional[_Iterable[int]] = ..., grammar: _Optional[_Union[Grammar, _Mapping]] = ..., speculate: _Optional[bool] = ...) -> None: ...

class Grammar(_message.Message):
    __slots__ = ("kind", "text")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    text: str
    def __init__(self, kind: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class LogitBias(_message.Message):
    __slots__ = ("token_id", "bias")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    token_id: int
    bias: float
    def __init__(self, token_id: _Optional[int] = ..., bias: _Optional[float] = ...) -> None: ...

class Owner(_message.Message):
    __slots__ = ("tenant", "user", "conversation")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    user: str
    conversation: str
    def __init__(self, tenant: _Optional[str] = ..., user: _Optional[str] = ..., conversation: _Optional[str] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("generation_id", "segments", "sampling", "owner", "priority", "deadline_s", "is_offline", "may_trim", "tools", "tool_choice", "continues_answer")
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    IS_OFFLINE_FIELD_NUMBER: _ClassVar[int]
    MAY_TRIM_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CHOICE_FIELD_NUMBER: _ClassVar[int]
    CONTINUES_ANSWER_FIELD_NUMBER: _ClassVar[int]
    generation_id: str
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    sampling: Sampling
    owner: Owner
    priority: int
    deadline_s: float
    is_offline: bool
    may_trim: bool
    tools: str
    tool_choice: str
    continues_answer: bool
    def __init__(self, generation_id: _Optional[str] = ..., segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., owner: _Optional[_Union[Owner, _Mapping]] = ..., priority: _Optional[int] = ..., deadline_s: _Optional[float] = ..., is_offline: _Optional[bool] = ..., may_trim: _Optional[bool] = ..., tools: _Optional[str] = ..., tool_choice: _Optional[str] = ..., continues_answer: _Optional[bool] = ...) -> None: ...

class SubmitReply(_message.Message):
    __slots__ = ("engine", "prompt_tokens", "trimmed_messages", "num_waiting")
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NUM_WAITING_FIELD_NUMBER: _ClassVar[int]
    engine: str
    prompt_tokens: int
    trimmed_messages: int
    num_waiting: int
    def __init__(self, engine: _Optional[str] = ..., prompt_tokens: _Optional[int] = ..., trimmed_messages: _Optional[int] = ..., num_waiting: _Optional[int] = ...) -> None: ...

class SessionCommand(_message.Message):
    __slots__ = ("attach", "detach")
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    DETACH_FIELD_NUMBER: _ClassVar[int]
    attach: Attach
    detach: Detach
    def __init__(self, attach: _Optional[_Union[Attach, _Mapping]] = ..., detach: _Optional[_Union[Detach, _Mapping]] = ...) -> None: ...

class Attach(_message.Message):
    __slots__ = ("generation_id", "after")
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    generation_id: str
    after: int
    def __init__(self, generation_id: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class Detach(_message.Message):
    __slots__ = ("generation_id",)
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    generation_id: str
    def __init__(self, generation_id: _Optional[str] = ...) -> None: ...

class EventPack(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("generation_id", "seq", "queued", "prefill", "delta", "done", "attach_failed")
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    PREFILL_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FAILED_FIELD_NUMBER: _ClassVar[int]
    generation_id: str
    seq: int
    queued: Queued
    prefill: Prefill
    delta: Delta
    done: Done
    attach_failed: AttachFailed
    def __init__(self, generation_id: _Optional[str] = ..., seq: _Optional[int] = ..., queued: _Optional[_Union[Queued, _Mapping]] = ..., prefill: _Optional[_Union[Prefill, _Mapping]] = ..., delta: _Optional[_Union[Delta, _Mapping]] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., attach_failed: _Optional[_Union[AttachFailed, _Mapping]] = ...) -> None: ...

class Queued(_message.Message):
    __slots__ = ("position",)
    POSITION_FIELD_NUMBER: _ClassVar[int]
    position: int
    def __init__(self, position: _Optional[int] = ...) -> None: ...

class Prefill(_message.Message):
    __slots__ = ("done", "total")
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    done: int
    total: int
    def __init__(self, done: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class Delta(_message.Message):
    __slots__ = ("text", "token_ids", "logprobs")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    text: str
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprob]
    def __init__(self, text: _Optional[str] = ..., token_ids: _Optional[_Iterable[int]] = ..., logprobs: _Optional[_Iterable[_Union[TokenLogprob, _Mapping]]] = ...) -> None: ...

class TokenLogprob(_message.Message):
    __slots__ = ("token_id", "token", "logprob", "top")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    token_id: int
    token: bytes
    logprob: float
    top: _containers.RepeatedCompositeFieldContainer[TokenLogprob]
    def __init__(self, token_id: _Optional[int] = ..., token: _Optional[bytes] = ..., logprob: _Optional[float] = ..., top: _Optional[_Iterable[_Union[TokenLogprob, _Mapping]]] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("finish_reason", "error_code", "error_message", "usage", "timings")
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    finish_reason: str
    error_code: str
    error_message: str
    usage: Usage
    timings: Timings
    def __init__(self, finish_reason: _Optional[str] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., timings: _Optional[_Union[Timings, _Mapping]] = ...) -> None: ...

class AttachFailed(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("prompt_tokens", "reused_head_tokens", "reused_prefix_tokens", "prefilled_tokens", "generated_tokens", "peak_kv_bytes", "block_seconds", "reused_shared_tokens", "reused_disk_tokens", "trimmed_messages", "device_seconds", "unseen_tokens")
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REUSED_HEAD_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REUSED_PREFIX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PREFILLED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    GENERATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PEAK_KV_BYTES_FIELD_NUMBER: _ClassVar[int]
    BLOCK_SECONDS_FIELD_NUMBER: _ClassVar[int]
    REUSED_SHARED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REUSED_DISK_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UNSEEN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    prompt_tokens: int
    reused_head_tokens: int
    reused_prefix_tokens: int
    prefilled_tokens: int
    generated_tokens: int
    peak_kv_bytes: int
    block_seconds: float
    reused_shared_tokens: int
    reused_disk_tokens: int
    trimmed_messages: int
    device_seconds: float
    unseen_tokens: int
    def __init__(self, prompt_tokens: _Optional[int] = ..., reused_head_tokens: _Optional[int] = ..., reused_prefix_tokens: _Optional[int] = ..., prefilled_tokens: _Optional[int] = ..., generated_tokens: _Optional[int] = ..., peak_kv_bytes: _Optional[int] = ..., block_seconds: _Optional[float] = ..., reused_shared_tokens: _Optional[int] = ..., reused_disk_tokens: _Optional[int] = ..., trimmed_messages: _Optional[int] = ..., device_seconds: _Optional[float] = ..., unseen_tokens: _Optional[int] = ...) -> None: ...

class Timings(_message.Message):
    __slots__ = ("queue_s", "prefill_s", "decode_s", "ttft_s")
    QUEUE_S_FIELD_NUMBER: _ClassVar[int]
    PREFILL_S_FIELD_NUMBER: _ClassVar[int]
    DECODE_S_FIELD_NUMBER: _ClassVar[int]
    TTFT_S_FIELD_NUMBER: _ClassVar[int]
    queue_s: float
    prefill_s: float
    decode_s: float
    ttft_s: float
    def __init__(self, queue_s: _Optional[float] = ..., prefill_s: _Optional[float] = ..., decode_s: _Optional[float] = ..., ttft_s: _Optional[float] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("generation_id", "reason", "only_if_orphaned")
    GENERATION_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ONLY_IF_ORPHANED_FIELD_NUMBER: _ClassVar[int]
    generation_id: str
    reason: str
    only_if_orphaned: bool
    def __init__(self, generation_id: _Optional[str] = ..., reason: _Optional[str] = ..., only_if_orphaned: _Optional[bool] = ...) -> None: ...

class CancelReply(_message.Message):
    __slots__ = ("was_running",)
    WAS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    was_running: bool
    def __init__(self, was_running: _Optional[bool] = ...) -> None: ...

class WarmRequest(_message.Message):
    __slots__ = ("segments", "owner")
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    owner: Owner
    def __init__(self, segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ..., owner: _Optional[_Union[Owner, _Mapping]] = ...) -> None: ...

class WarmReply(_message.Message):
    __slots__ = ("accepted", "prompt_tokens")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    prompt_tokens: int
    def __init__(self, accepted: _Optional[bool] = ..., prompt_tokens: _Optional[int] = ...) -> None: ...

class ForgetRequest(_message.Message):
    __slots__ = ("owner",)
    OWNER_FIELD_NUMBER: _ClassVar[int]
    owner: Owner
    def __init__(self, owner: _Optional[_Union[Owner, _Mapping]] = ...) -> None: ...

class ForgetReply(_message.Message):
    __slots__ = ("freed_blocks",)
    FREED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    freed_blocks: int
    def __init__(self, freed_blocks: _Optional[int] = ...) -> None: ...

class CountTokensRequest(_message.Message):
    __slots__ = ("segments",)
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    def __init__(self, segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ...) -> None: ...

class CountTokensReply(_message.Message):
    __slots__ = ("num_tokens", "max_context")
    NUM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    num_tokens: int
    max_context: int
    def __init__(self, num_tokens: _Optional[int] = ..., max_context: _Optional[int] = ...) -> None: ...

class EmbedRequest(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, texts: _Optional[_Iterable[str]] = ...) -> None: ...

class Vector(_message.Message):
    __slots__ = ("values", "num_tokens")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    NUM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    values: bytes
    num_tokens: int
    def __init__(self, values: _Optional[bytes] = ..., num_tokens: _Optional[int] = ...) -> None: ...

class EmbedReply(_message.Message):
    __slots__ = ("vectors", "embedder")
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDER_FIELD_NUMBER: _ClassVar[int]
    vectors: _containers.RepeatedCompositeFieldContainer[Vector]
    embedder: str
    def __init__(self, vectors: _Optional[_Iterable[_Union[Vector, _Mapping]]] = ..., embedder: _Optional[str] = ...) -> None: ...

class Pair(_message.Message):
    __slots__ = ("first", "second")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    first: str
    second: str
    def __init__(self, first: _Optional[str] = ..., second: _Optional[str] = ...) -> None: ...

class VerifyRequest(_message.Message):
    __slots__ = ("pairs",)
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[Pair]
    def __init__(self, pairs: _Optional[_Iterable[_Union[Pair, _Mapping]]] = ...) -> None: ...

class VerifyReply(_message.Message):
    __slots__ = ("scores",)
    SCORES_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, scores: _Optional[_Iterable[float]] = ...) -> None: ...

class InfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InfoReply(_message.Message):
    __slots__ = ("engine", "model", "revision", "tokenizer", "max_context", "max_output_tokens", "dtype", "device", "embedder", "embedding_dim", "kv_bytes_per_token", "is_trial_model", "default_temperature", "template", "policy", "block_tokens", "kv_budget_bytes", "verifier", "upstream", "tool_format", "has_grammar")
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDER_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    KV_BYTES_PER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    IS_TRIAL_MODEL_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    BLOCK_TOKENS_FIELD_NUMBER: _ClassVar[int]
    KV_BUDGET_BYTES_FIELD_NUMBER: _ClassVar[int]
    VERIFIER_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_FIELD_NUMBER: _ClassVar[int]
    TOOL_FORMAT_FIELD_NUMBER: _ClassVar[int]
    HAS_GRAMMAR_FIELD_NUMBER: _ClassVar[int]
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
    template: Template
    policy: str
    block_tokens: int
    kv_budget_bytes: int
    verifier: str
    upstream: str
    tool_format: str
    has_grammar: bool
    def __init__(self, engine: _Optional[str] = ..., model: _Optional[str] = ..., revision: _Optional[str] = ..., tokenizer: _Optional[str] = ..., max_context: _Optional[int] = ..., max_output_tokens: _Optional[int] = ..., dtype: _Optional[str] = ..., device: _Optional[str] = ..., embedder: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., kv_bytes_per_token: _Optional[int] = ..., is_trial_model: _Optional[bool] = ..., default_temperature: _Optional[float] = ..., template: _Optional[_Union[Template, _Mapping]] = ..., policy: _Optional[str] = ..., block_tokens: _Optional[int] = ..., kv_budget_bytes: _Optional[int] = ..., verifier: _Optional[str] = ..., upstream: _Optional[str] = ..., tool_format: _Optional[str] = ..., has_grammar: _Optional[bool] = ...) -> None: ...

class Template(_message.Message):
    __slots__ = ("is_append_only", "strips_thinking", "has_date", "has_default_system", "is_followed")
    IS_APPEND_ONLY_FIELD_NUMBER: _ClassVar[int]
    STRIPS_THINKING_FIELD_NUMBER: _ClassVar[int]
    HAS_DATE_FIELD_NUMBER: _ClassVar[int]
    HAS_DEFAULT_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    IS_FOLLOWED_FIELD_NUMBER: _ClassVar[int]
    is_append_only: bool
    strips_thinking: bool
    has_date: bool
    has_default_system: bool
    is_followed: bool
    def __init__(self, is_append_only: _Optional[bool] = ..., strips_thinking: _Optional[bool] = ..., has_date: _Optional[bool] = ..., has_default_system: _Optional[bool] = ..., is_followed: _Optional[bool] = ...) -> None: ...

class StatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatsReply(_message.Message):
    __slots__ = ("is_ready", "reason", "steps", "decode_forwards", "running", "waiting", "waiting_tokens", "prompt_tokens", "reused_head_tokens", "reused_prefix_tokens", "prefilled_tokens", "generated_tokens", "preemptions", "evicted_blocks", "cancelled", "refused", "blocks_total", "blocks_used", "blocks_cached", "blocks_free", "embedded_texts", "ledger_fallbacks", "step_seconds_sum", "core_restarts", "live_logs", "reused_shared_tokens", "reused_disk_tokens", "blocks_closed", "blocks_superseded", "blocks_stale", "blocks_idle", "blocks_active", "blocks_shared", "kv_budget_bytes", "kv_committed_bytes", "kv_slack", "disk_blocks", "disk_bytes", "disk_written_blocks", "disk_restored_blocks", "disk_refused_blocks", "prefill_tokens_per_s", "restore_bytes_per_s", "verified_pairs", "lane_batches", "repetitions", "trimmed_requests", "canonicalised", "leak_alarms", "shared_prefixes", "waiting_offline", "step_target_tokens", "waiting_for_seats", "waiting_for_blocks", "device_bytes", "disk_skipped_blocks", "device_seconds", "background_prompt_tokens", "background_reused_tokens", "background_prefilled_tokens", "background_generated_tokens", "background_device_seconds", "warmed_tokens", "warmed_used_tokens", "warmed_wasted_tokens", "drafted_tokens", "accepted_tokens")
    IS_READY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    DECODE_FORWARDS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    WAITING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REUSED_HEAD_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REUSED_PREFIX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PREFILLED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    GENERATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONS_FIELD_NUMBER: _ClassVar[int]
    EVICTED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_USED_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_CACHED_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FREE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDED_TEXTS_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FALLBACKS_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_SUM_FIELD_NUMBER: _ClassVar[int]
    CORE_RESTARTS_FIELD_NUMBER: _ClassVar[int]
    LIVE_LOGS_FIELD_NUMBER: _ClassVar[int]
    REUSED_SHARED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REUSED_DISK_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_CLOSED_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_STALE_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_IDLE_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_SHARED_FIELD_NUMBER: _ClassVar[int]
    KV_BUDGET_BYTES_FIELD_NUMBER: _ClassVar[int]
    KV_COMMITTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    KV_SLACK_FIELD_NUMBER: _ClassVar[int]
    DISK_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_WRITTEN_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    DISK_RESTORED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    DISK_REFUSED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    PREFILL_TOKENS_PER_S_FIELD_NUMBER: _ClassVar[int]
    RESTORE_BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    VERIFIED_PAIRS_FIELD_NUMBER: _ClassVar[int]
    LANE_BATCHES_FIELD_NUMBER: _ClassVar[int]
    REPETITIONS_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    CANONICALISED_FIELD_NUMBER: _ClassVar[int]
    LEAK_ALARMS_FIELD_NUMBER: _ClassVar[int]
    SHARED_PREFIXES_FIELD_NUMBER: _ClassVar[int]
    WAITING_OFFLINE_FIELD_NUMBER: _ClassVar[int]
    STEP_TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_SEATS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_SKIPPED_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_REUSED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_PREFILLED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_GENERATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WARMED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    WARMED_USED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    WARMED_WASTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DRAFTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
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
    reused_shared_tokens: int
    reused_disk_tokens: int
    blocks_closed: int
    blocks_superseded: int
    blocks_stale: int
    blocks_idle: int
    blocks_active: int
    blocks_shared: int
    kv_budget_bytes: int
    kv_committed_bytes: int
    kv_slack: float
    disk_blocks: int
    disk_bytes: int
    disk_written_blocks: int
    disk_restored_blocks: int
    disk_refused_blocks: int
    prefill_tokens_per_s: float
    restore_bytes_per_s: float
    verified_pairs: int
    lane_batches: int
    repetitions: int
    trimmed_requests: int
    canonicalised: int
    leak_alarms: int
    shared_prefixes: _containers.RepeatedCompositeFieldContainer[SharedPrefix]
    waiting_offline: int
    step_target_tokens: float
    waiting_for_seats: int
    waiting_for_blocks: int
    device_bytes: int
    disk_skipped_blocks: int
    device_seconds: float
    background_prompt_tokens: int
    background_reused_tokens: int
    background_prefilled_tokens: int
    background_generated_tokens: int
    background_device_seconds: float
    warmed_tokens: int
    warmed_used_tokens: int
    warmed_wasted_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    def __init__(self, is_ready: _Optional[bool] = ..., reason: _Optional[str] = ..., steps: _Optional[int] = ..., decode_forwards: _Optional[int] = ..., running: _Optional[int] = ..., waiting: _Optional[int] = ..., waiting_tokens: _Optional[int] = ..., prompt_tokens: _Optional[int] = ..., reused_head_tokens: _Optional[int] = ..., reused_prefix_tokens: _Optional[int] = ..., prefilled_tokens: _Optional[int] = ..., generated_tokens: _Optional[int] = ..., preemptions: _Optional[int] = ..., evicted_blocks: _Optional[int] = ..., cancelled: _Optional[int] = ..., refused: _Optional[int] = ..., blocks_total: _Optional[int] = ..., blocks_used: _Optional[int] = ..., blocks_cached: _Optional[int] = ..., blocks_free: _Optional[int] = ..., embedded_texts: _Optional[int] = ..., ledger_fallbacks: _Optional[int] = ..., step_seconds_sum: _Optional[float] = ..., core_restarts: _Optional[int] = ..., live_logs: _Optional[int] = ..., reused_shared_tokens: _Optional[int] = ..., reused_disk_tokens: _Optional[int] = ..., blocks_closed: _Optional[int] = ..., blocks_superseded: _Optional[int] = ..., blocks_stale: _Optional[int] = ..., blocks_idle: _Optional[int] = ..., blocks_active: _Optional[int] = ..., blocks_shared: _Optional[int] = ..., kv_budget_bytes: _Optional[int] = ..., kv_committed_bytes: _Optional[int] = ..., kv_slack: _Optional[float] = ..., disk_blocks: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., disk_written_blocks: _Optional[int] = ..., disk_restored_blocks: _Optional[int] = ..., disk_refused_blocks: _Optional[int] = ..., prefill_tokens_per_s: _Optional[float] = ..., restore_bytes_per_s: _Optional[float] = ..., verified_pairs: _Optional[int] = ..., lane_batches: _Optional[int] = ..., repetitions: _Optional[int] = ..., trimmed_requests: _Optional[int] = ..., canonicalised: _Optional[int] = ..., leak_alarms: _Optional[int] = ..., shared_prefixes: _Optional[_Iterable[_Union[SharedPrefix, _Mapping]]] = ..., waiting_offline: _Optional[int] = ..., step_target_tokens: _Optional[float] = ..., waiting_for_seats: _Optional[int] = ..., waiting_for_blocks: _Optional[int] = ..., device_bytes: _Optional[int] = ..., disk_skipped_blocks: _Optional[int] = ..., device_seconds: _Optional[float] = ..., background_prompt_tokens: _Optional[int] = ..., background_reused_tokens: _Optional[int] = ..., background_prefilled_tokens: _Optional[int] = ..., background_generated_tokens: _Optional[int] = ..., background_device_seconds: _Optional[float] = ..., warmed_tokens: _Optional[int] = ..., warmed_used_tokens: _Optional[int] = ..., warmed_wasted_tokens: _Optional[int] = ..., drafted_tokens: _Optional[int] = ..., accepted_tokens: _Optional[int] = ...) -> None: ...

class SharedPrefix(_message.Message):
    __slots__ = ("name", "num_tokens", "overlap", "is_shared")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    IS_SHARED_FIELD_NUMBER: _ClassVar[int]
    name: str
    num_tokens: int
    overlap: float
    is_shared: bool
    def __init__(self, name: _Optional[str] = ..., num_tokens: _Optional[int] = ..., overlap: _Optional[float] = ..., is_shared: _Optional[bool] = ...) -> None: ...
