"""The bodies of requests that ask for answers: the fields we know and their types.

Unknown fields are ignored and listed, null equals not given. Knows no flow; `v1.prompts` reads the messages,
`v1.sampling` how tokens are chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from chatsite.v1.errors import invalid

MAX_LISTED_FIELDS = 20
MAX_PRIORITY = 1000
MAX_TOKEN_ID = 2**31 - 1
MAX_EXACT_FLOAT = 2**53
OFFLINE_TIER = "flex"
# All but one are one to us: a tier that costs more elsewhere is no faster here.
SERVICE_TIERS = ("auto", "default", "priority", "scale", OFFLINE_TIER)
# Their values would change the answer, so ignoring them would be a lie. Empty values ask for nothing.
NOT_SUPPORTED = ("audio", "chat_template")


class Part(msgspec.Struct):
    type: str
    text: str | None = None


class CalledFunction(msgspec.Struct):
    name: str
    arguments: str | None = None


class ToolCall(msgspec.Struct):
    """A call that an assistant's message made."""

    function: CalledFunction
    id: str = ""
    type: str | None = None


class Message(msgspec.Struct):
    role: str | None = None
    content: str | list[Part] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None


class Item(msgspec.Struct):
    """Of the input of a response: a message, a call, a result, or something else that its type names."""

    type: str | None = None
    role: str | None = None
    content: str | list[Part] | None = None
    name: str | None = None
    arguments: str | None = None
    call_id: str | None = None
    output: str | list[Part] | None = None


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class CacheWishes(msgspec.Struct, rename="kebab"):
    no_cache: bool | None = None
    no_store: bool | None = None
    only_if_cached: bool | None = None


class JsonSchema(msgspec.Struct):
    """`strict` changes nothing: an answer is held to all of the schema, or the request is refused."""

    name: str | None = None
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct):
    type: str
    json_schema: JsonSchema | None = None


class TextFormat(JsonSchema, kw_only=True):
    """The same of a response, in one object."""

    type: str


class Asked(msgspec.Struct):
    """What every request for an answer may say."""

    model: str | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    min_tokens: int | None = None
    stop_token_ids: list[Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKEN_ID)]] | None = None
    speculate: bool | None = None
    logit_bias: dict[str, float] | None = None
    n: int | None = None
    user: str | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None
    priority: int | None = None
    truncation: str | None = None
    cache: CacheWishes | None = None


class ChatRequest(Asked):
    """The fields of `POST /v1/chat/completions` that mean something here."""

    messages: list[Message] | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: ResponseFormat | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    functions: Any = None
    function_call: Any = None
    audio: Any = None
    chat_template: Any = None


class CompletionRequest(Asked):
    """The fields of `POST /v1/completions` that mean something here. A prompt may be anything until it was checked."""

    prompt: Any = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    logprobs: int | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None


class TextOptions(msgspec.Struct):
    format: TextFormat | None = None


class ResponsesRequest(Asked):
    """The fields of `POST /v1/responses` that mean something here. The input may be anything until it was checked."""

    input: str | list[Item] | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    text: TextOptions | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None  # accepted, and nothing is stored
    previous_response_id: str | None = None
    conversation: Any = None
    background: bool | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    prompt: Any = None


def convert(body: Any, struct: type[msgspec.Struct]) -> Any:
    """`body` as `struct`. Raises ApiError that names the field."""
    if isinstance(body, dict):
        body = {name: _whole(value) for name, value in body.items()}
    try:
        return msgspec.convert(body, struct, strict=True)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`").lstrip(".").removesuffix("[...]")  # an object's key is not named
        raise invalid(field or None, f"{text}.", "invalid_type") from error


def _whole(value: Any) -> Any:
    """JSON knows one kind of numbers: 16.0 is 16, as clients write it that know no integers."""
    if isinstance(value, list):
        return [_whole(item) for item in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= MAX_EXACT_FLOAT
    return int(value) if is_whole else value


def parse_chat(body: Any) -> ChatRequest:
    """The checked request. Raises ApiError that names the first field that is wrong."""
    request: ChatRequest = convert(body, ChatRequest)
    check_asked(request)
    if not request.messages:
        raise invalid("messages", "You must give at least one message.", "missing_required_parameter")
    check_not_given(request, NOT_SUPPORTED)
    for name, instead in (("functions", "tools"), ("function_call", "tool_choice")):
        if getattr(request, name):
            message = f"'{name}' is not supported by this server; use '{instead}'."
            raise invalid(name, message, "unsupported_parameter")
    if request.top_logprobs is not None and not request.logprobs:
        raise invalid("top_logprobs", "'top_logprobs' needs 'logprobs'.")
    return request


def parse_completion(body: Any) -> CompletionRequest:
    """The checked request but for its prompt. Raises ApiError that names the first field that is wrong."""
    request: CompletionRequest = convert(body, CompletionRequest)
    check_asked(request)
    check_not_given(request, ("echo", "suffix"))
    if request.best_of not in (None, request.n or 1):
        raise invalid("best_of", "'best_of' must equal 'n'.", "unsupported_parameter")
    return request


def parse_response(body: Any) -> ResponsesRequest:
    """The checked request. Raises ApiError that names the first field that is wrong."""
    request: ResponsesRequest = convert(body, ResponsesRequest)
    check_asked(request)
    if not request.input:
        raise invalid("input", "You must give an input.", "missing_required_parameter")
    if request.previous_response_id or request.conversation:
        field = "previous_response_id" if request.previous_response_id else "conversation"
        raise invalid(
            field,
            "Responses are not stored here; send the whole history as 'input'.",
            "unsupported_parameter",
        )
    check_not_given(request, ("background", "prompt"))
    if request.n not in (None, 1):
        raise invalid("n", "A response is one answer.", "unsupported_parameter")
    return request


def check_asked(request: Asked) -> None:
    """What is the same for every request for an answer. Raises ApiError."""
    if not request.model:
        raise invalid("model", "You must name a model.", "missing_required_parameter")
    if request.truncation not in (None, "auto", "disabled"):
        raise invalid("truncation", "'truncation' must be 'auto' or 'disabled'.", "invalid_value")
    if request.service_tier not in (None, *SERVICE_TIERS):
        raise invalid("service_tier", f"'service_tier' must be one of: {', '.join(SERVICE_TIERS)}.")
    if not 0 <= (request.priority or 0) <= MAX_PRIORITY:
        raise invalid("priority", f"'priority' is 0 to {MAX_PRIORITY}; higher waits longer.", "out_of_range")


def check_not_given(request: Asked, names: Iterable[str]) -> None:
    for name in names:
        if getattr(request, name):
            raise invalid(name, f"'{name}' is not supported by this server.", "unsupported_parameter")


def ignored_fields(body: dict[str, Any], struct: type[Asked]) -> str:
    """Names of given fields that mean nothing here, for a response header."""
    known = struct.__struct_fields__
    names = (name for name in body if name not in known and re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", name))
    return ", ".join(list(names)[:MAX_LISTED_FIELDS])
