"""The shapes of the cache's administration. What a value may be is decided by the cache's own forms."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema
from pydantic import ConfigDict

from chatsite.json_types import AS_NUMBER, SAYS_SOMETHING, Flag

Text = Annotated[str, Field(max_length=1000)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1), AS_NUMBER]
Share = Annotated[float, Field(ge=0, le=1), AS_NUMBER]
Keyword = Annotated[str, Field(max_length=100, pattern=SAYS_SOMETHING)]
Example = Annotated[str, Field(max_length=500, pattern=SAYS_SOMETHING)]
Tag = Annotated[str, Field(max_length=50, pattern=SAYS_SOMETHING)]
Id = Annotated[int, Field(ge=1, lt=2**63), AS_NUMBER]

RULE: dict[str, Any] = {
    "name": "Opening hours",
    "keywords": ["opening hours", "营业时间"],
    "mode": "semantic",
    "sharing": "public",
    "ttl_s": 3600,
}


class RuleChange(Schema):
    """Fields of a rule, as on its page; those that are left out stay."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"ttl_s": 60}})

    name: Annotated[str, Field(max_length=100, pattern=SAYS_SOMETHING)] | None = None
    is_enabled: Flag | None = None
    priority: Annotated[int, Field(ge=-(2**31), le=2**31 - 1), AS_NUMBER] | None = None
    pattern: Annotated[Text, Field(description="RE2, searched in the question, case ignored.")] | None = None
    keywords: Annotated[list[Keyword], Field(max_length=1000)] | None = None
    examples: Annotated[list[Example], Field(max_length=20)] | None = None
    example_similarity: Share | None = None
    tenant: (
        Annotated[str, Field(max_length=64, description="The business line's number; empty: all.")] | None
    ) = None
    model: Annotated[str, Field(max_length=200)] | None = None
    mode: Literal["off", "exact", "semantic", "shadow"] | None = None
    sharing: Literal["private", "tenant", "promoted", "public"] | None = None
    ttl_s: Annotated[int, Field(ge=1, le=315_360_000, description="Whole seconds."), AS_NUMBER] | None = None
    stale_s: Count | None = None
    accept_similarity: Share | None = None
    verify_similarity: Share | None = None
    is_strict: Flag | None = None
    max_temperature: Annotated[float, Field(ge=0, le=2), AS_NUMBER] | None = None
    capacity: Annotated[int, Field(ge=1, le=2**31 - 1), AS_NUMBER] | None = None
    wrong_share: Share | None = None
    check_share: Share | None = None
    tags: Annotated[list[Tag], Field(max_length=100)] | None = None


class RuleIn(RuleChange):
    """A new rule; what is left out has the default of its page."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": RULE})

    name: Annotated[str, Field(max_length=100, pattern=SAYS_SOMETHING)]


class DryRunIn(RuleChange):
    """A rule as it would be: `rule` with these changes, or a new one."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": RULE})

    rule: Id | None = None


class FiguresOut(Schema):
    """What a rule did: look-ups and hits of the last 24 hours, savings of the last 30 days, answers stored now."""

    entries: int
    hits: int = Field(description="Of the answers that are stored now.")
    last_hit_at: datetime | None
    looks_24h: int
    exact_hits_24h: int
    semantic_hits_24h: int
    tokens_saved_30d: int
    ms_saved_30d: float


class RuleOut(Schema):
    """A rule with what it did."""

    id: int
    name: str
    is_enabled: bool
    priority: int
    pattern: str
    keywords: list[str]
    examples: list[str]
    example_similarity: float
    tenant: str
    model: str
    mode: str
    sharing: str
    ttl_s: int
    stale_s: int
    accept_similarity: float
    verify_similarity: float
    is_strict: bool
    max_temperature: float
    capacity: int
    wrong_share: float
    check_share: float
    tags: list[str]
    tightened: str = Field(description="What the rule does of its own accord: verify, exact, or nothing.")
    figures: FiguresOut


class OrderIn(Schema):
    """Every rule once, the first to be tried first."""

    model_config = ConfigDict(json_schema_extra={"example": {"ids": [2, 1, 3]}})

    ids: Annotated[list[Id], Field(max_length=1000)]


class AddedOut(Schema):
    added: list[str]


class DryRunOut(Schema):
    """What the rule would have done with the last questions whose words are known."""

    num_questions: int
    num_matched: int
    num_decided: int = Field(description="Of those matched, the ones that no earlier rule takes.")
    shown: list[str] = Field(description="Some of those decided.")
    without_examples: bool = Field(description="There are examples, and no engine to compare with them.")


class HourOut(Schema):
    hour: datetime
    looks: int
    exact_hits: int
    semantic_hits: int
    stale_hits: int
    tokens_saved: int
    ms_saved: float


class WrongOut(Schema):
    """The share of wrong answers lies between `low` and `high`."""

    num: int
    num_wrong: int
    low: float
    high: float


class StatisticsOut(Schema):
    """A rule hour by hour, and what is held against it: of those checked, and of those served what people said."""

    hours: list[HourOut]
    sampled: WrongOut
    reported: WrongOut


class EntryOut(Schema):
    """A stored answer. `answer_sha256` names the text, for a change that must not overwrite a newer one."""

    id: int
    question: str
    answer: str
    answer_sha256: str
    rule: int
    source: str
    sharing: str
    tenant: str
    owner: str
    model_revision: str
    hits: int
    is_pinned: bool
    created_at: datetime
    expires_at: datetime


class EntryPage(Schema):
    items: list[EntryOut]
    next: int | None = Field(description="`before` of the next page.")


class EntryChange(Schema):
    """Another text for the answer."""

    model_config = ConfigDict(json_schema_extra={"example": {"answer": "From 9 to 17."}})

    answer: Annotated[str, Field(max_length=200_000, pattern=SAYS_SOMETHING)]
    answer_sha256: Annotated[str, Field(max_length=100)] | None = None


class ActIn(Schema):
    """One act on up to 1,000 stored answers."""

    model_config = ConfigDict(json_schema_extra={"example": {"act": "evict", "ids": [17]}})

    act: Literal["evict", "wrong-hit", "renew", "pin", "unpin", "promote"]
    ids: Annotated[list[Id], Field(min_length=1, max_length=1000)]


AT_LEAST_ONE: list[Any] = [
    {"required": [name], "properties": {name: {"type": kind, "pattern": SAYS_SOMETHING}}}
    for name, kind in {
        "rule": "integer", "older_than_h": "integer", "model_revision": "string", "tenant": "string", "owner": "string",
    }.items()
]  # fmt: skip


class EvictIn(Schema):
    """What the answers to evict have in common; at least one thing. `dry_run` only counts them."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"older_than_h": 24, "dry_run": True}, "anyOf": AT_LEAST_ONE}
    )

    rule: Id | None = None
    model_revision: Annotated[str, Field(max_length=200)] = ""
    tenant: Annotated[str, Field(max_length=64)] = ""
    owner: Annotated[str, Field(max_length=64)] = ""
    older_than_h: Annotated[int, Field(ge=0, le=100_000), AS_NUMBER] | None = None
    dry_run: Flag = False


class NumOut(Schema):
    num: int


class TryIn(Schema):
    """A question as somebody of a business line would ask it; `stored`: another one to compare it with."""

    model_config = ConfigDict(json_schema_extra={"example": {"text": "When do you open?", "tenant": "1"}})

    text: Annotated[str, Field(max_length=20_000, pattern=SAYS_SOMETHING)]
    tenant: Annotated[str, Field(max_length=64)] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    owner: Annotated[str, Field(max_length=64)] = ""
    stored: Annotated[str, Field(max_length=500, description="Longer ones are compared with nothing.")] = ""


class TriedOut(Schema):
    """The whole way of a question: rules in order, what the guard says, candidates with their scores, time per step."""

    model_config = ConfigDict(extra="allow")

    text: str
    language: str
    lasting: str
    stands_alone: bool
    why_private: str | None
    rules: list[dict[str, Any]]
    compared: list[dict[str, Any]]
    decision: dict[str, Any] | None = Field(description="None while there is no engine to ask.")


class ImportOut(Schema):
    """An import as far as it is. `refused` are rows that were not taken, with the reason; only in the first answer."""

    id: int | None = Field(description="None for a dry run.")
    rule: int
    file_name: str
    state: str
    num_rows: int
    num_done: int
    num_refused: int
    trouble: str
    refused: list[dict[str, Any]] = Field(default_factory=list)


class CompareIn(Schema):
    """A question as in a test; `entry`: the stored answer beside which the model's is put, else the nearest one."""

    model_config = ConfigDict(json_schema_extra={"example": {"text": "When do you open?", "tenant": "1"}})

    text: Annotated[str, Field(max_length=20_000, pattern=SAYS_SOMETHING)]
    tenant: Annotated[str, Field(max_length=64)] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    owner: Annotated[str, Field(max_length=64)] = ""
    entry: Id | None = None


class ComparisonOut(Schema):
    """A comparison as far as it is. `is_same` is what the check of the budget says; None where nothing was compared."""

    id: int
    state: str = Field(description="waiting, running, done or failed.")
    trouble: str = Field(description="Why there is no answer, or no whole one: a stable code.")
    question: str
    entry: int
    stored_question: str
    stored_answer: str
    made: str = Field(description="What the model says now.")
    is_whole: bool
    is_same: bool | None
    score: float | None = Field(description="The verifier's, of the first sentences.")
    took_ms: float
    created_at: datetime
    ended_at: datetime | None


CASE: dict[str, Any] = {
    "question": "When do you open?",
    "tenant": "1",
    "expected": "hit",
    "rule": "Opening hours",
}


class CaseChange(Schema):
    """What is asked and expected; what is left out stays."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"expected": "miss"}})

    question: Annotated[str, Field(max_length=20_000, pattern=SAYS_SOMETHING)] | None = None
    tenant: Annotated[str, Field(max_length=64)] | None = None
    owner: (
        Annotated[str, Field(max_length=64, description="As whose question; empty: somebody new.")] | None
    ) = None
    model: Annotated[str, Field(max_length=200)] | None = None
    expected: Literal["hit", "miss", "bypass", "never"] | None = None
    rule: Annotated[str, Field(max_length=100, description="The name of the one that decides.")] | None = None
    stored_question: Annotated[str, Field(max_length=20_000)] | None = None
    answer_part: Annotated[str, Field(max_length=200_000)] | None = None
    note: Annotated[str, Field(max_length=200)] | None = None


class CaseIn(CaseChange):
    """A new one; `entry`: the stored answer that it is saved from, with which it is erased."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": CASE})

    question: Annotated[str, Field(max_length=20_000, pattern=SAYS_SOMETHING)]
    expected: Literal["hit", "miss", "bypass", "never"]
    entry: Id | None = None


class GotOut(Schema):
    """What the cache decided when it was last asked."""

    outcome: str
    reason: str
    rule: str
    entry: int | None


class CaseOut(Schema):
    """A case with how it went. Words of stored questions and answers are None for who may not see entries."""

    id: int
    question: str
    tenant: str
    owner: str
    model: str
    expected: str
    rule: str
    stored_question: str | None
    answer_part: str | None
    note: str
    state: str = Field(description="new, passed or failed.")
    is_due: bool = Field(description="It waits for a worker.")
    ran_at: datetime | None
    problems: list[str] = Field(description="Stable codes: outcome, rule, question, answer, served.")
    why: str
    got: GotOut


class RunIn(Schema):
    """Which are run again; None: all."""

    model_config = ConfigDict(json_schema_extra={"example": {"ids": [3]}})

    ids: Annotated[list[Id], Field(max_length=1000)] | None = None
