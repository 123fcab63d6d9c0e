"""From a checked request and its headers to the `Turn`s that it asks for.

Knows what of a request changes the answer, its cache and its kept KV. Knows no HTTP response.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4

from django.conf import settings

from chatsite.chat.reply import engine_request
from chatsite.chat.turn import CacheControl, Caller, Turn
from chatsite.v1.errors import invalid
from chatsite.v1.input_items import input_segments
from chatsite.v1.prompts import raw_prompts, segments_of
from chatsite.v1.response_format import chat_grammar, response_grammar
from chatsite.v1.sampling import TOP_LOGPROBS, sampling_of
from chatsite.v1.schema import OFFLINE_TIER, Asked, ChatRequest, CompletionRequest, ResponsesRequest
from chatsite.v1.tools import NO_TOOLS, Offer
from inference.choices import choices_of
from inference.types import EngineInfo, Sampling, Segment

MAX_ANSWERS = 8
# Of `/v1/completions`, as OpenAI has it.
DEFAULT_COMPLETION_TOKENS = 16


def chat_turns(
    request: ChatRequest, cache_header: str, caller: Caller, info: EngineInfo, offer: Offer = NO_TOOLS
) -> list[Turn]:
    """One for every choice. Raises ApiError that names the field that is wrong."""
    TOP_LOGPROBS.check("top_logprobs", request.top_logprobs)
    sampling = sampling_of(
        request,
        info.max_output_tokens,
        limits={
            "max_completion_tokens": request.max_completion_tokens,
            "max_tokens": request.max_tokens,
        },
        num_logprobs=(request.top_logprobs or 0) if request.logprobs else None,
        grammar=chat_grammar(request, info),
    )
    most, has_tools = settings.CONFIG.max_message_chars, bool(info.tool_format)
    segments = segments_of(request.messages or (), most, has_tools=has_tools)
    turns = turns_of(request, [segments], sampling, cache_header, caller)
    return [with_tools(turn, offer) for turn in turns]


def completion_turns(
    request: CompletionRequest, cache_header: str, caller: Caller, info: EngineInfo
) -> list[Turn]:
    """`n` for every prompt. Raw prompts belong to no conversation. Raises ApiError that names the field."""
    TOP_LOGPROBS.check("logprobs", request.logprobs)
    sampling = sampling_of(
        request,
        info.max_output_tokens,
        limits={
            "max_tokens": DEFAULT_COMPLETION_TOKENS if request.max_tokens is None else request.max_tokens
        },
        num_logprobs=request.logprobs,
    )
    prompts = raw_prompts(request.prompt, settings.CONFIG.max_message_chars)
    turns = turns_of(request, prompts, sampling, cache_header, caller)
    return [replace(turn, conversation="", may_trim=False) for turn in turns]


def response_turn(
    request: ResponsesRequest, cache_header: str, caller: Caller, info: EngineInfo, offer: Offer
) -> Turn:
    """Raises ApiError that names the field."""
    sampling = sampling_of(
        request,
        info.max_output_tokens,
        limits={"max_output_tokens": request.max_output_tokens},
        num_logprobs=None,
        grammar=response_grammar(request, info),
    )
    most, has_tools = settings.CONFIG.max_message_chars, bool(info.tool_format)
    segments = input_segments(request.input or "", request.instructions, most, has_tools=has_tools)
    return with_tools(turns_of(request, [segments], sampling, cache_header, caller)[0], offer)


def with_tools(turn: Turn, offer: Offer) -> Turn:
    """What a model does with functions is no answer for whoever asks the same: what it looked up changes."""
    is_of_tools = any(segment.tool_calls or segment.role == "tool" for segment in turn.segments)
    cache = turn.cache
    if offer.functions or is_of_tools:
        cache = replace(cache, may_read=False, may_store=False)
    return replace(turn, cache=cache, tools=offer.tools, tool_choice=offer.choice if offer.functions else "")


def turns_of(
    request: Asked,
    prompts: Sequence[tuple[Segment, ...]],
    sampling: Sampling,
    cache_header: str,
    caller: Caller,
) -> list[Turn]:
    """`n` for every prompt, those of one prompt beside each other. Raises ApiError."""
    num_choices = _num_choices(request, len(prompts))
    may_cache = num_choices == 1 and sampling.logprobs is None and not sampling.logit_bias
    turns = [
        Turn(
            caller=caller,
            generation=uuid4(),
            segments=segments,
            model=request.model or "",
            sampling=sampling,
            conversation=_conversation(request),
            cache=cache_control(cache_header, request, may_cache=may_cache),
            priority=request.priority or 0,
            is_offline=request.service_tier == OFFLINE_TIER,
            may_trim=request.truncation != "disabled",
        )
        for segments in prompts
    ]
    return [choice for turn in turns for choice in _choices_of(turn, num_choices)]


def cache_control(header: str, request: Asked, *, may_cache: bool = True) -> CacheControl:
    """What the Cache-Control header and the body's `cache` object ask for together. The cache holds one text per
    question: `may_cache` is False for requests that it could not answer, and from which it must learn nothing."""
    wishes = {directive.strip().lower() for directive in header.split(",")}
    body = request.cache
    if body is not None:
        given = {"no-cache": body.no_cache, "no-store": body.no_store, "only-if-cached": body.only_if_cached}
        wishes |= {name for name, value in given.items() if value}
    return CacheControl(
        may_read=may_cache and "no-cache" not in wishes,
        may_store=may_cache and "no-store" not in wishes,
        only_if_cached="only-if-cached" in wishes,
    )


def _num_choices(request: Asked, num_prompts: int) -> int:
    most = min(MAX_ANSWERS, settings.CONFIG.max_live_per_user)
    num_choices = 1 if request.n is None else request.n
    if num_choices < 1 or num_choices * num_prompts > most:
        raise invalid("n", f"One request may ask for 1 to {most} answers.", "out_of_range")
    return num_choices


def _choices_of(turn: Turn, num_choices: int) -> list[Turn]:
    return [
        replace(turn, generation=UUID(choice.generation_id), sampling=choice.sampling)
        for choice in choices_of(engine_request(turn), num_choices)
    ]


def _conversation(request: Asked) -> str:
    """The key under which this caller's KV is kept; a digest, because the given text has no bound."""
    key = request.prompt_cache_key or request.user
    return "v1:" + hashlib.sha256(key.encode()).hexdigest()[:32] if key else ""
