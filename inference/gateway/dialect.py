"""Finds out at start what an upstream takes and gives: one token is asked for, in the fullest form first, and one word.

Knows the order of forms and how each is told to people. Knows no HTTP.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from inference.core.messages import Admit, SamplingSpec
from inference.front.tokenizer import Tokenizer
from inference.gateway.errors import Broken, Refused
from inference.gateway.request import Dialect, body_of
from inference.gateway.wire import Chunk, ModelCard
from inference.types import JSON_SCHEMA, Grammar

# What no model says by itself to a greeting, and tokens enough for it in any vocabulary.
HELD, MAX_HELD_TOKENS = "held", 16


class Upstream(Protocol):
    async def models(self) -> list[ModelCard]: ...
    def complete(self, body: dict[str, Any], headers: dict[str, str]) -> AsyncIterator[Chunk]: ...


@dataclass(frozen=True, slots=True)
class Served:
    """What the upstream serves, and how to talk to it. `max_context` is None where it does not say."""

    dialect: Dialect
    revision: str
    max_context: int | None


async def learn(upstream: Upstream, wanted_model: str, load_tokenizer: Callable[[], Tokenizer]) -> Served:
    """Raises UpstreamError while it cannot be used."""
    card = _choose(await upstream.models(), wanted_model)
    refusal: Refused | None = None
    for form in _forms(card.id):
        try:
            gives_ids = await _probe(upstream, form, load_tokenizer)
        except Refused as error:
            refusal = refusal or error
            continue
        held = await _held(upstream, form, load_tokenizer)
        return Served(replace(held, gives_ids=gives_ids), _revision(card), card.max_model_len)
    assert refusal is not None
    raise refusal


def describe(dialect: Dialect) -> str:
    """One line for people: what is lost, if anything is."""
    lost = []
    if not dialect.takes_ids:
        lost.append("prompts go as text (text that names a control token is refused)")
    if not dialect.gives_ids:
        lost.append("answers come as text, so reuse of generated tokens at the next turn is not guaranteed")
    if not dialect.takes_extensions:
        lost.append("no salt between users, no top_k, min_p, repetition_penalty or stop ids")
    if not dialect.takes_priority:
        lost.append("no priorities")
    if not dialect.holds_grammars:
        lost.append("no answer is held to a schema")
    elif not dialect.reads_grammars:
        lost.append("answers are held to JSON only")
    return f"{dialect.model}: " + ("; ".join(lost) or "token ids both ways, salts and priorities are taken")


def _choose(cards: list[ModelCard], wanted: str) -> ModelCard:
    if not cards:
        raise Broken("the upstream serves no model")
    if not wanted:
        return cards[0]
    for card in cards:
        if card.id == wanted:
            return card
    names = ", ".join(card.id for card in cards)
    raise Broken(f"the upstream does not serve ENGINE_UPSTREAM_MODEL={wanted} but {names}")


def _forms(model: str) -> list[Dialect]:
    """From everything to the barest. Ids matter most: they keep what users type apart from control tokens."""
    everything = Dialect(model)
    richness = [
        everything,
        replace(everything, takes_priority=False),
        replace(everything, takes_priority=False, takes_extensions=False),
    ]
    return [replace(form, takes_ids=takes_ids) for takes_ids in (True, False) for form in richness]


async def _probe(upstream: Upstream, form: Dialect, load_tokenizer: Callable[[], Tokenizer]) -> bool:
    """Whether ids come back. Raises Refused when the upstream does not take this form."""
    prompt_ids = load_tokenizer().encode_plain("Hi", is_start=True)
    admit = Admit("probe", prompt_ids, SamplingSpec(), 1, [], b"probe", b"", is_background=True)
    gives_ids = has_answered = False
    async with aclosing(upstream.complete(body_of(admit, form, load_tokenizer), {})) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            for choice in chunk.choices:
                has_answered = True
                gives_ids = gives_ids or bool(choice.token_ids)
    if not has_answered:
        raise Broken("the upstream made no token for a probe")
    return gives_ids


async def _held(upstream: Upstream, form: Dialect, load_tokenizer: Callable[[], Tokenizer]) -> Dialect:
    """The form, with what it holds answers to."""
    for reads_grammars in (True, False):
        held = replace(form, reads_grammars=reads_grammars)
        if await _holds(upstream, held, load_tokenizer):
            return held
    return replace(form, holds_grammars=False, reads_grammars=False)


async def _holds(upstream: Upstream, form: Dialect, load_tokenizer: Callable[[], Tokenizer]) -> bool:
    """Whether an answer is what a schema leaves: many servers take the field and know nothing of it."""
    only = Grammar(JSON_SCHEMA, json.dumps({"enum": [HELD]}))
    prompt_ids = load_tokenizer().encode_plain("Hi", is_start=True)
    spec = SamplingSpec(grammar=only)
    admit = Admit("probe", prompt_ids, spec, MAX_HELD_TOKENS, [], b"probe", b"", is_background=True)
    text = ""
    try:
        async with aclosing(upstream.complete(body_of(admit, form, load_tokenizer), {})) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                text += "".join(choice.text for choice in chunk.choices)
    except (Refused, Broken):
        return False
    return text.strip().startswith(json.dumps(HELD))


def _revision(card: ModelCard) -> str:
    return "\0".join(["upstream", card.id, card.root or "", str(card.max_model_len or "")])
