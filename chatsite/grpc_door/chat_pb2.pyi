from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClientMessage(_message.Message):
    __slots__ = ("request_id", "ask", "stop")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    ask: Ask
    stop: Stop
    def __init__(self, request_id: _Optional[str] = ..., ask: _Optional[_Union[Ask, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("model", "messages", "temperature", "top_p", "top_k", "seed", "max_tokens", "stop", "n", "prompt_cache_key", "cache", "options")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    PROMPT_CACHE_KEY_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    model: str
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    temperature: float
    top_p: float
    top_k: int
    seed: int
    max_tokens: int
    stop: _containers.RepeatedScalarFieldContainer[str]
    n: int
    prompt_cache_key: str
    cache: CacheWishes
    options: str
    def __init__(self, model: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_k: _Optional[int] = ..., seed: _Optional[int] = ..., max_tokens: _Optional[int] = ..., stop: _Optional[_Iterable[str]] = ..., n: _Optional[int] = ..., prompt_cache_key: _Optional[str] = ..., cache: _Optional[_Union[CacheWishes, _Mapping]] = ..., options: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("role", "content")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ...) -> None: ...

class CacheWishes(_message.Message):
    __slots__ = ("no_cache", "no_store", "only_if_cached")
    NO_CACHE_FIELD_NUMBER: _ClassVar[int]
    NO_STORE_FIELD_NUMBER: _ClassVar[int]
    ONLY_IF_CACHED_FIELD_NUMBER: _ClassVar[int]
    no_cache: bool
    no_store: bool
    only_if_cached: bool
    def __init__(self, no_cache: _Optional[bool] = ..., no_store: _Optional[bool] = ..., only_if_cached: _Optional[bool] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ServerMessage(_message.Message):
    __slots__ = ("request_id", "index", "accepted", "queued", "prefill", "delta", "tool_call", "done", "failed")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    PREFILL_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    index: int
    accepted: Accepted
    queued: Queued
    prefill: Prefill
    delta: Delta
    tool_call: ToolCall
    done: Done
    failed: Failed
    def __init__(self, request_id: _Optional[str] = ..., index: _Optional[int] = ..., accepted: _Optional[_Union[Accepted, _Mapping]] = ..., queued: _Optional[_Union[Queued, _Mapping]] = ..., prefill: _Optional[_Union[Prefill, _Mapping]] = ..., delta: _Optional[_Union[Delta, _Mapping]] = ..., tool_call: _Optional[_Union[ToolCall, _Mapping]] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ...) -> None: ...

class Accepted(_message.Message):
    __slots__ = ("generation", "cache", "cache_age_s", "trimmed_messages")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    CACHE_AGE_S_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    generation: str
    cache: str
    cache_age_s: int
    trimmed_messages: int
    def __init__(self, generation: _Optional[str] = ..., cache: _Optional[str] = ..., cache_age_s: _Optional[int] = ..., trimmed_messages: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("id", "name", "arguments")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    arguments: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., arguments: _Optional[str] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("finish_reason", "prompt_tokens", "reused_tokens", "generated_tokens", "ttft_ms", "queue_ms", "prefill_ms", "decode_ms")
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REUSED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    GENERATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TTFT_MS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MS_FIELD_NUMBER: _ClassVar[int]
    PREFILL_MS_FIELD_NUMBER: _ClassVar[int]
    DECODE_MS_FIELD_NUMBER: _ClassVar[int]
    finish_reason: str
    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int
    ttft_ms: float
    queue_ms: float
    prefill_ms: float
    decode_ms: float
    def __init__(self, finish_reason: _Optional[str] = ..., prompt_tokens: _Optional[int] = ..., reused_tokens: _Optional[int] = ..., generated_tokens: _Optional[int] = ..., ttft_ms: _Optional[float] = ..., queue_ms: _Optional[float] = ..., prefill_ms: _Optional[float] = ..., decode_ms: _Optional[float] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("code", "message", "status", "param", "retry_after_s")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PARAM_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_S_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    status: int
    param: str
    retry_after_s: float
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., status: _Optional[int] = ..., param: _Optional[str] = ..., retry_after_s: _Optional[float] = ...) -> None: ...

class ModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ModelsReply(_message.Message):
    __slots__ = ("chat_model", "embedding_model", "chat_models")
    CHAT_MODEL_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_MODEL_FIELD_NUMBER: _ClassVar[int]
    CHAT_MODELS_FIELD_NUMBER: _ClassVar[int]
    chat_model: str
    embedding_model: str
    chat_models: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, chat_model: _Optional[str] = ..., embedding_model: _Optional[str] = ..., chat_models: _Optional[_Iterable[str]] = ...) -> None: ...

class EmbedRequest(_message.Message):
    __slots__ = ("model", "input")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    model: str
    input: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, model: _Optional[str] = ..., input: _Optional[_Iterable[str]] = ...) -> None: ...

class Vector(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, values: _Optional[_Iterable[float]] = ...) -> None: ...

class EmbedReply(_message.Message):
    __slots__ = ("model", "vectors", "prompt_tokens")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    model: str
    vectors: _containers.RepeatedCompositeFieldContainer[Vector]
    prompt_tokens: int
    def __init__(self, model: _Optional[str] = ..., vectors: _Optional[_Iterable[_Union[Vector, _Mapping]]] = ..., prompt_tokens: _Optional[int] = ...) -> None: ...
