"""The values that pass the cache's door: a question in, a decision out, an answer to remember.

Knows no storage and no Django; `service` fills them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from semcache.rules.examples import Likeness
from semcache.rules.policy import Rule
from semcache.text.admission import WhyPrivate
from semcache.text.guard import Verdict

# Raises on trouble; vectors have unit length.
Embed = Callable[[list[str]], Awaitable[Sequence[Sequence[float]]]]
# One score per (stored question, asked question), 1 = the same meaning. Raises NoVerifier, or anything on trouble.
Verify = Callable[[list[tuple[str, str]]], Awaitable[Sequence[float]]]


class NoVerifier(Exception):
    """Nobody gives second opinions here, which is no fault: the grey zone stays a miss."""


class Outcome(StrEnum):
    HIT_EXACT = "hit-exact"
    HIT_SEMANTIC = "hit-semantic"
    MISS = "miss"
    BYPASS = "bypass"


class Reason(StrEnum):
    """Why a look-up ended as it did; stable codes for metrics and the admin."""

    EXACT = "exact"
    SIMILAR = "similar"
    STALE = "stale"  # a hit past its time, within the rule's window; it is made anew meanwhile
    NOT_STORED = "not-stored"  # nothing live with this exact text, and semantic look-up does not apply
    NO_NEIGHBOUR = "no-neighbour"
    BELOW_THRESHOLD = "below-threshold"
    GREY_ZONE = "grey-zone"  # nobody gave a second opinion
    VERIFIED = "verified"
    DOUBTED = "doubted"  # the second opinion was that they mean different things
    VERIFIER_FAILED = "verifier-failed"
    GUARDED = "guarded"
    TIGHTENED = "tightened"  # the rule serves less by meaning since too many of its answers were wrong
    SHADOW = "shadow"
    EMPTY = "empty-question"
    NO_RULE = "no-rule"
    RULE_OFF = "rule-off"
    TEMPERATURE = "temperature"
    OF_THIS_MOMENT = "of-this-moment"
    NOT_ASKED = "not-asked"  # the caller wants no stored answer
    TIMEOUT = "timeout"
    EMBEDDER_FAILED = "embedder-failed"
    STORE_FAILED = "store-failed"
    RESTING = "resting"  # the store failed repeatedly and is left alone for a while


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked and everything that narrows whose answers may serve it.

    `history` is the canonical text or a hash of everything before `text`; "" for a first turn. `turns` are what was
    said and answered before, in turn: with them a follow-up may be found by its meaning, too. `parameters` is a
    canonical string of everything that changes the output, without omitted values. `embedder` is "" when there is
    no embedding lane: then only exact matches are served. `generation` is the answer with which all that is kept of
    the question is erased.
    """

    text: str
    history: str
    tenant: str
    owner: str
    model: str
    model_revision: str
    system_prompt: str
    parameters: str
    temperature: float | None
    embedder: str
    epoch: str = "1"
    may_read: bool = True
    may_store: bool = True
    turns: tuple[str, ...] = ()
    generation: UUID | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored answer that may be served. `similarity` is 1.0 for an exact match.

    `took_ms` is how long it took to make, 0 where that is not known. `prompt_sha256` names the question it was made
    for; `is_stale`: past its time, and served while it is made anew. The answer hangs on `context` beside the question.
    `generation` is the caller's name of the one that made it.
    """

    entry_id: int
    question: str
    answer: str
    token_ids: tuple[int, ...]
    tokenizer: str
    num_tokens: int
    created_at: datetime
    age_s: int
    similarity: float
    took_ms: float = 0.0
    prompt_sha256: str = ""
    is_stale: bool = False
    sharing: str = "private"
    context: tuple[str, ...] = ()
    generation: UUID | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored neighbour and what was found out about it; `verdicts` is empty below the thresholds.

    `score` is the verifier's, None where it was not asked.
    """

    entry_id: int
    question: str
    similarity: float
    verdicts: tuple[Verdict, ...] = ()
    score: float | None = None
    is_served: bool = False
    sharing: str = "private"


@dataclass(frozen=True, slots=True)
class Decision:
    """What a look-up found, why, and everything `remember` needs afterwards.

    `would_hit` is what a shadow rule would have served. `scope` and `prompt_sha256` are where this question's own
    answer belongs, found by others as `sharing` says; `why_private` is why by nobody, where the rule shares.
    `own_scope` is its asker's alone, `public_scope` where it counts towards promotion, "" where it does not. `vector`
    is None when it may be found by its exact text only, `context` what of the conversation its answer hangs on.
    `examples` are of the rules that an example could have made win. `steps` are (name, milliseconds).
    """

    outcome: Outcome
    reason: Reason
    hit: Hit | None = None
    would_hit: Hit | None = None
    rule: Rule | None = None
    examples: tuple[Likeness, ...] = ()
    text: str = ""
    scope: str = ""
    prompt_sha256: str = ""
    sharing: str = "private"
    why_private: WhyPrivate | None = None
    own_scope: str = ""
    public_scope: str = ""
    vector: tuple[float, ...] | None = None
    context: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    steps: tuple[tuple[str, float], ...] = ()
    is_storable: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A generated answer. `is_complete` is False for stopped, truncated, failed and refused ones.

    `took_ms` is how long the model took.
    """

    text: str
    is_complete: bool
    token_ids: tuple[int, ...] = ()
    tokenizer: str = ""
    num_tokens: int = 0
    took_ms: float = 0.0
    generation: UUID | None = None
