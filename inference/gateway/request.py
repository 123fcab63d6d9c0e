"""From a sequence to the request that asks an upstream for it.

Knows our fields, OpenAI's, vLLM's extensions to them, and which of these this upstream takes. Everything that an
upstream would fill in from defaults of its own is sent, so that the same request gives the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inference.core.grammar_text import GrammarNotUsable, rules_of
from inference.core.messages import Admit
from inference.front.tokenizer import Tokenizer
from inference.gateway.errors import Refused
from inference.types import JSON_OBJECT, LARK, Grammar

# Added to the priority (lower runs earlier): bulk work stands behind people, warm-ups and probes behind everything.
OFFLINE_PRIORITY = 1 << 16
BACKGROUND_PRIORITY = 1 << 24

# What a request may lose without meaning something else; left out when an upstream refuses a request for them.
NEUTRAL_FIELDS = ("priority", "stream_options")

# Blanks that have an end, between the parts of JSON only. The pattern for all blanks that our own core sets is
# repeated without end by the older library (llguidance 1.7.6) in vLLM 0.32, which holds to these.
_BLANKS = r"[ \t\n\r]{0,32}"
_SPACING = {
    "whitespace_flexible": False,
    "item_separator": f"{_BLANKS},{_BLANKS}",
    "key_separator": f"{_BLANKS}:{_BLANKS}",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What this upstream takes and gives, as a probe found it."""

    model: str
    takes_ids: bool = True  # prompts as token ids
    gives_ids: bool = True  # token ids of the answer
    takes_extensions: bool = True  # salts, sampling beyond OpenAI's, stop ids
    takes_priority: bool = True
    holds_grammars: bool = True  # answers are what was asked for
    reads_grammars: bool = True  # also those that are no JSON, as rules in Lark


def body_of(admit: Admit, dialect: Dialect, load_tokenizer: Callable[[], Tokenizer]) -> dict[str, Any]:
    """Raises Refused for what cannot be said in this dialect without changing its meaning."""
    if dialect.takes_ids:
        prompt: list[int] | str = admit.prompt_ids
    else:
        prompt = prompt_text(load_tokenizer(), admit.prompt_ids)
    body: dict[str, Any] = {
        "model": dialect.model,
        "prompt": prompt,
        "max_tokens": max(1, admit.max_tokens),
        "stream": True,
        "stream_options": {"include_usage": True},
        **_sampling(admit, dialect),
        **_form(admit.sampling.grammar, dialect),
    }
    if dialect.takes_extensions:
        body |= _extensions(admit)
    elif admit.sampling.min_tokens:
        raise Refused("the upstream does not know min_tokens")
    if dialect.takes_priority and (priority := _priority(admit)):
        body["priority"] = priority
    return body


def headers_of(admit: Admit, session_header: str) -> dict[str, str]:
    """The conversation, unreadable but always the same, for a router that keeps conversations on one machine."""
    return {session_header: admit.conversation.hex()} if admit.conversation and session_header else {}


def prompt_text(tokenizer: Tokenizer, ids: list[int]) -> str:
    """The prompt for an upstream that takes text only. Raises Refused when a user's words would turn into control
    tokens on the way: there they cannot be told from ours."""
    text = tokenizer.decode(ids)
    read_as_control = [
        tokenizer.control_id(match.group()) for match in tokenizer.control_pattern.finditer(text)
    ]
    meant_as_control = [token for token in ids if token in set(read_as_control)]
    if read_as_control != meant_as_control:
        raise Refused(
            "the text names a control token of the model, and the upstream takes prompts as text only"
        )
    return text


def _sampling(admit: Admit, dialect: Dialect) -> dict[str, Any]:
    spec = admit.sampling
    fields: dict[str, Any] = {
        "temperature": spec.temperature,
        "top_p": spec.top_p,
        "presence_penalty": spec.presence_penalty,
        "frequency_penalty": spec.frequency_penalty,
    }
    if spec.temperature > 0:
        fields["seed"] = spec.seed
    if spec.logit_bias:
        fields["logit_bias"] = {str(token): bias for token, bias in spec.logit_bias}
    if spec.logprobs >= 0:
        if not dialect.gives_ids:
            raise Refused("the upstream gives no token ids, so there are no logprobs")
        fields["logprobs"] = spec.logprobs
    return fields


def _form(grammar: Grammar | None, dialect: Dialect) -> dict[str, Any]:
    """The rules that our own core compiles, for vLLM, whose back end `guidance` is the same library. OpenAI's field for
    JSON elsewhere."""
    if grammar is None:
        return {}
    if not dialect.holds_grammars:
        raise Refused("the upstream holds no answer to a grammar")
    if dialect.reads_grammars:
        try:
            return {"structured_outputs": {"grammar": rules_of(grammar, _SPACING)}}
        except GrammarNotUsable as error:
            raise Refused(f"no answer can be held to the grammar: {error}") from None
    if grammar.kind == JSON_OBJECT:
        return {"response_format": {"type": "json_object"}}
    if grammar.kind == LARK:
        raise Refused("the upstream holds answers to JSON only")
    schema = {"name": "answer", "schema": json.loads(grammar.text), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _extensions(admit: Admit) -> dict[str, Any]:
    spec = admit.sampling
    fields: dict[str, Any] = {
        "top_k": spec.top_k or -1,  # "off" in every version; some do not take 0
        "min_p": spec.min_p,
        "repetition_penalty": spec.repetition_penalty,
        "stop_token_ids": admit.stop_ids,
        "return_token_ids": True,
        "add_special_tokens": False,  # the template has put them where they belong
        "cache_salt": admit.salt.hex(),
    }
    if spec.min_tokens:
        fields["min_tokens"] = spec.min_tokens
    if spec.logprobs >= 0:
        fields["return_tokens_as_token_ids"] = True
    return fields


def _priority(admit: Admit) -> int:
    if admit.is_background:
        return BACKGROUND_PRIORITY
    return admit.priority + (OFFLINE_PRIORITY if admit.is_offline else 0)
