"""The body of a chat completion request: the fields we know, their types and ranges.

Unknown fields are ignored and listed, null equals not given. Knows no flow; `v1.prompts` reads the messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from chatsite.v1.errors import invalid
from inference.types import Sampling

MAX_STOPS = 4
MAX_STOP_CHARS = 64
MAX_INT32 = 2**31 - 1
MAX_LISTED_FIELDS = 20
OFFLINE_TIER = "flex"
# All but one are one to us: a tier that costs more elsewhere is no faster here.
SERVICE_TIERS = ("auto", "default", "priority", "scale", OFFLINE_TIER)
# Their values would change the answer, so ignoring them would be a lie. Empty values ask for nothing.
NOT_SUPPORTED = ("tools", "functions", "logit_bias", "logprobs", "top_logprobs", "audio", "chat_template")


class Part(msgspec.Struct):
    type: str
    text: str | None = None


class Message(msgspec.Struct):
    role: str | None = None
    content: str | list[Part] | None = None
    tool_calls: list[Any] | None = None


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class CacheWishes(msgspec.Struct, rename="kebab"):
    no_cache: bool | None = None
    no_store: bool | None = None
    only_if_cached: bool | None = None


class ResponseFormat(msgspec.Struct):
    type: str


class ChatRequest(msgspec.Struct):
    """The fields of `POST /v1/chat/completions` that mean something here."""

    model: str | None = None
    messages: list[Message] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    n: int | None = None
    response_format: ResponseFormat | None = None
    user: str | None = None
    prompt_cache_key: str | None = None
    truncation: str | None = None
    service_tier: str | None = None
    cache: CacheWishes | None = None
    tools: Any = None
    functions: Any = None
    logit_bias: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    audio: Any = None
    chat_template: Any = None


def convert(body: Any, struct: type[msgspec.Struct]) -> Any:
    """`body` as `struct`. Raises ApiError that names the field."""
    try:
        return msgspec.convert(body, struct, strict=True)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        raise invalid(path.rstrip("`").lstrip(".") or None, f"{text}.", "invalid_type") from error


def parse_chat(body: Any) -> ChatRequest:
    """The checked request. Raises ApiError that names the first field that is wrong."""
    request: ChatRequest = convert(body, ChatRequest)
    if not request.model:
        raise invalid("model", "You must name a model.", "missing_required_parameter")
    if not request.messages:
        raise invalid("messages", "You must give at least one message.", "missing_required_parameter")
    for name in NOT_SUPPORTED:
        if getattr(request, name):
            raise invalid(name, f"'{name}' is not supported by this server.", "unsupported_parameter")
    if request.response_format is not None and request.response_format.type != "text":
        raise invalid(
            "response_format", "Only the response format 'text' is supported.", "unsupported_parameter"
        )
    if request.truncation not in (None, "auto", "disabled"):
        raise invalid("truncation", "'truncation' must be 'auto' or 'disabled'.", "invalid_value")
    if request.service_tier not in (None, *SERVICE_TIERS):
        raise invalid("service_tier", f"'service_tier' must be one of: {', '.join(SERVICE_TIERS)}.")
    if request.n not in (None, 1):
        raise invalid("n", "Only n = 1 is supported.", "unsupported_parameter")
    return request


@dataclass(frozen=True, slots=True)
class Range:
    low: float
    high: float
    excludes_low: bool = False

    def check(self, name: str, value: float | None) -> None:
        if value is None:
            return
        if not self.low <= value <= self.high or (self.excludes_low and value == self.low):
            edge = "above" if self.excludes_low else "at least"
            raise invalid(
                name, f"'{name}' must be {edge} {self.low:g} and at most {self.high:g}.", "out_of_range"
            )


RANGES = {
    "temperature": Range(0, 2),
    "top_p": Range(0, 1, excludes_low=True),
    "top_k": Range(0, MAX_INT32),
    "min_p": Range(0, 1),
    "repetition_penalty": Range(0, 10, excludes_low=True),
    "presence_penalty": Range(-2, 2),
    "frequency_penalty": Range(-2, 2),
    "seed": Range(-(2**63), 2**63 - 1),
    "max_tokens": Range(1, float("inf")),
    "max_completion_tokens": Range(1, float("inf")),
}


def sampling_of(request: ChatRequest, max_output_tokens: int) -> Sampling:
    """The sampling that was asked for; a larger answer than the engine gives is capped. Raises ApiError."""
    for name, allowed in RANGES.items():
        allowed.check(name, getattr(request, name))
    most = request.max_completion_tokens if request.max_completion_tokens is not None else request.max_tokens
    return Sampling(
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        min_p=request.min_p,
        repetition_penalty=request.repetition_penalty,
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        # The engine's seeds are unsigned; two's complement keeps every seed distinct.
        seed=None if request.seed is None else request.seed % 2**64,
        stop=_stops(request.stop),
        max_tokens=None if most is None else min(most, max_output_tokens),
    )


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(stops) > MAX_STOPS:
        raise invalid("stop", f"At most {MAX_STOPS} stop strings are allowed.", "out_of_range")
    if any(len(one) > MAX_STOP_CHARS for one in stops):
        raise invalid("stop", f"A stop string may have at most {MAX_STOP_CHARS} characters.", "out_of_range")
    return tuple(one for one in stops if one)  # an empty string would stop everything


def ignored_fields(body: dict[str, Any]) -> str:
    """Names of given fields that mean nothing here, for a response header."""
    known = ChatRequest.__struct_fields__
    names = (name for name in body if name not in known and re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", name))
    return ", ".join(list(names)[:MAX_LISTED_FIELDS])
