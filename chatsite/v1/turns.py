"""From a checked request and its headers to a `Turn`.

Knows what of a request changes the answer, its cache and its kept KV. Knows no HTTP response.
"""

from __future__ import annotations

import hashlib
from uuid import uuid4

from django.conf import settings

from chatsite.chat.turn import CacheControl, Caller, Turn
from chatsite.v1.prompts import segments_of
from chatsite.v1.schema import OFFLINE_TIER, ChatRequest, sampling_of
from inference.types import EngineInfo


def turn_of(request: ChatRequest, cache_header: str, caller: Caller, info: EngineInfo) -> Turn:
    """The question. Raises ApiError that names the field that is wrong."""
    return Turn(
        caller=caller,
        generation=uuid4(),
        segments=segments_of(request.messages or (), settings.CONFIG.max_message_chars),
        sampling=sampling_of(request, info.max_output_tokens),
        conversation=_conversation(request),
        cache=cache_control(cache_header, request),
        is_offline=request.service_tier == OFFLINE_TIER,
        may_trim=request.truncation != "disabled",
    )


def cache_control(header: str, request: ChatRequest) -> CacheControl:
    """What the Cache-Control header and the body's `cache` object ask for together."""
    wishes = {directive.strip().lower() for directive in header.split(",")}
    body = request.cache
    if body is not None:
        given = {"no-cache": body.no_cache, "no-store": body.no_store, "only-if-cached": body.only_if_cached}
        wishes |= {name for name, value in given.items() if value}
    return CacheControl(
        may_read="no-cache" not in wishes,
        may_store="no-store" not in wishes,
        only_if_cached="only-if-cached" in wishes,
    )


def _conversation(request: ChatRequest) -> str:
    """The key under which this caller's KV is kept; a digest, because the given text has no bound."""
    key = request.prompt_cache_key or request.user
    return "v1:" + hashlib.sha256(key.encode()).hexdigest()[:32] if key else ""
