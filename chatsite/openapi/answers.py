"""What `/v1` answers with, as types: documentation that real answers are checked against.

Knows shapes only. The forms (`v1.chat_form` and its like) make them; a test holds every form against its type here.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Model(msgspec.Struct):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(msgspec.Struct):
    object: Literal["list"]
    data: list[Model]


class CachedTokens(msgspec.Struct):
    cached_tokens: int


class Usage(msgspec.Struct):
    """Tokens. The prompt counts once for all its choices; `cached_tokens` of it were not computed again."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class TokenLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int] | None


class ChatLogprob(TokenLogprob):
    top_logprobs: list[TokenLogprob]


class ChatLogprobs(msgspec.Struct):
    content: list[ChatLogprob] | None
    refusal: None


class CalledFunction(msgspec.Struct):
    name: str
    arguments: str


class ToolCall(msgspec.Struct):
    """A call that the model asks for; its arguments are JSON in a text, and the model's own words."""

    id: str
    type: Literal["function"]
    function: CalledFunction


class AnswerMessage(msgspec.Struct):
    role: Literal["assistant"]
    content: str | None
    refusal: None
    annotations: list[Any]
    tool_calls: list[ToolCall] | msgspec.UnsetType = msgspec.UNSET


class ChatChoice(msgspec.Struct):
    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length", "tool_calls"]
    stop_reason: str | msgspec.UnsetType = msgspec.UNSET


class ChatCompletion(msgspec.Struct):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    system_fingerprint: str
    usage: Usage


class ToolCallPiece(msgspec.Struct):
    index: int
    id: str | msgspec.UnsetType = msgspec.UNSET
    type: Literal["function"] | msgspec.UnsetType = msgspec.UNSET
    function: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class Delta(msgspec.Struct):
    role: Literal["assistant"] | msgspec.UnsetType = msgspec.UNSET
    content: str | msgspec.UnsetType | None = msgspec.UNSET
    refusal: msgspec.UnsetType | None = msgspec.UNSET
    tool_calls: list[ToolCallPiece] | msgspec.UnsetType = msgspec.UNSET


class ChunkChoice(msgspec.Struct):
    index: int
    delta: Delta
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length", "tool_calls"] | None
    stop_reason: str | msgspec.UnsetType = msgspec.UNSET


class ChatCompletionChunk(msgspec.Struct):
    """One `data:` line of a streamed chat completion. The one with usage has no choices."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    system_fingerprint: str
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET


class CompletionLogprobs(msgspec.Struct):
    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(msgspec.Struct):
    text: str
    index: int
    logprobs: CompletionLogprobs | None
    finish_reason: Literal["stop", "length"] | None
    stop_reason: str | msgspec.UnsetType = msgspec.UNSET


class Completion(msgspec.Struct):
    """A text completion; its chunks look alike, with usage only in the last one."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    system_fingerprint: str
    usage: Usage | msgspec.UnsetType = msgspec.UNSET


class Embedding(msgspec.Struct):
    """A vector: numbers, or little-endian float32 in base64."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(msgspec.Struct):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(msgspec.Struct):
    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage


class OutputText(msgspec.Struct):
    type: Literal["output_text"]
    text: str
    annotations: list[Any]
    logprobs: list[Any]


class OutputMessage(msgspec.Struct, tag_field="type", tag="message"):
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["assistant"]
    content: list[OutputText]


class OutputCall(msgspec.Struct, tag_field="type", tag="function_call"):
    id: str
    status: Literal["in_progress", "completed"]
    call_id: str
    name: str
    arguments: str


class ResponseTool(msgspec.Struct):
    type: Literal["function"]
    name: str
    description: str | None
    parameters: dict[str, Any]
    strict: bool


class CachedInput(CachedTokens):
    cache_write_tokens: int


class ReasoningTokens(msgspec.Struct):
    reasoning_tokens: int


class ResponseUsage(msgspec.Struct):
    input_tokens: int
    input_tokens_details: CachedInput
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int


class ResponseError(msgspec.Struct):
    code: str
    message: str


class IncompleteDetails(msgspec.Struct):
    reason: str


class Response(msgspec.Struct):
    """A response and what was asked for; nothing of it is stored."""

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: list[OutputMessage | OutputCall]
    tools: list[ResponseTool]
    tool_choice: str | dict[str, str]
    parallel_tool_calls: bool
    previous_response_id: None
    service_tier: str
    store: Literal[False]
    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    background: Literal[False]
    prompt_cache_key: str | None
    truncation: str
    usage: ResponseUsage | None


class ResponseEvent(msgspec.Struct):
    """One event of a streamed response; what else it holds depends on its type."""

    type: str
    sequence_number: int
    response: Response | msgspec.UnsetType = msgspec.UNSET
    item: OutputMessage | OutputCall | msgspec.UnsetType = msgspec.UNSET
    part: OutputText | msgspec.UnsetType = msgspec.UNSET
    delta: str | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType = msgspec.UNSET
    arguments: str | msgspec.UnsetType = msgspec.UNSET
    item_id: str | msgspec.UnsetType = msgspec.UNSET
    output_index: int | msgspec.UnsetType = msgspec.UNSET
    content_index: int | msgspec.UnsetType = msgspec.UNSET


ANSWERS: tuple[type[msgspec.Struct], ...] = (
    ModelList, Model, ChatCompletion, ChatCompletionChunk, Completion, EmbeddingList, Response, ResponseEvent,
)  # fmt: skip
