"""A table of the wanted size, filled as the door would fill it: half private entries of many owners, half shared ones.

Scopes and keys are the look-up's own. The first questions are real ones with their real vectors; they are those that
are asked. All others stand for the mass: made-up words whose vectors lie around the real ones, as those of an encoder
do. Knows no clock but the one that dates entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from django.db import connection
from pgvector import Vector

from semcache.decision import Question
from semcache.look import Look
from semcache.models import CacheRule
from semcache.rules.policy import Rule
from semcache.rules.rulebook import as_value
from semcache.service import forget_rules
from semcache.storage import shared_index
from semcache.text.normalize import canonical

# So many questions of each half are real ones.
NUM_REAL = 200
# An owner's scope is 1 % of the private half, but never fewer rows than this.
MIN_PER_OWNER = 10
ANSWER = "An answer of the usual length. " * 20
VERBS = (
    "archive", "print", "collect", "share", "rename", "encrypt", "restore", "schedule", "publish", "merge", "compare",
    "annotate", "delegate", "approve", "record", "convert", "monitor", "duplicate", "inspect", "transcribe",
)  # fmt: skip
THINGS = (
    "contracts", "photographs", "spreadsheets", "meetings", "recipes", "songs", "maps", "drawings", "newsletters",
    "podcasts",
)  # fmt: skip
# In binary, which spares writing and reading 384 numbers a row in decimals: a hundred thousand rows take seconds.
COLUMNS = {
    "scope": "text", "prompt_sha256": "text", "question": "text", "answer": "text", "embedding": "bytea",
    "rule_id": "int8", "sharing": "text", "tenant": "text", "owner": "text", "model_revision": "text",
    "embedder": "text", "token_ids": "int4[]", "tokenizer": "text", "num_tokens": "int4", "is_pinned": "bool",
    "created_at": "timestamptz", "expires_at": "timestamptz",
}  # fmt: skip
COPY = f"COPY semcache_cacheentry ({', '.join(COLUMNS)}) FROM STDIN (FORMAT BINARY)"


@dataclass(frozen=True, slots=True)
class Kind:
    """One half of the table: what its questions look like, the rule that they meet, and who embeds them."""

    name: str
    text: str
    alike: str
    num_owners: int
    embedder: str
    dim: int

    def question(self, number: int, *, is_alike: bool = False) -> Question:
        text = (self.alike if is_alike else self.text).format(topic(number))
        return Question(
            text, history="", tenant="bench", owner=f"user:{number % self.num_owners}", model="m", model_revision="1",
            system_prompt="", parameters="{}", temperature=None, embedder=self.embedder,
        )  # fmt: skip


def kinds(num_rows: int, embedder: str, dim: int) -> tuple[Kind, Kind]:
    num_owners = max(1, min(100, num_rows // 2 // MIN_PER_OWNER))
    private = "Which plans let a team {}?", "Which of the plans let a team {}?"
    public = "Which prices let a team {}?", "Which of the prices let a team {}?"
    return Kind("private", *private, num_owners, embedder, dim), Kind("public", *public, 1, embedder, dim)


def empty() -> None:
    """No entries, no vector index over them, and the two rules."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE semcache_cacheentry, semcache_cacheentryuse")
    shared_index.rebuild()
    CacheRule.objects.all().delete()
    CacheRule.objects.create(name="private", keywords=["plans"], sharing="private", capacity=10**6)
    CacheRule.objects.create(name="public", keywords=["prices"], sharing="public", capacity=10**6)
    forget_rules()


def fill(kind: Kind, numbers: range, real: np.ndarray) -> None:
    """`real` (num_real, dim): the vectors of the first questions, in their order."""
    rule = as_value(CacheRule.objects.get(name=kind.name))
    created_at = datetime.now(UTC) - timedelta(minutes=1)
    with _unhurried(), connection.cursor() as cursor, cursor.copy(COPY) as copy:
        copy.set_types(list(COLUMNS.values()))
        for number, vector in zip(numbers, vectors_of(numbers, real), strict=True):
            copy.write_row(_row(kind, rule, number, vector, created_at))


def vectors_of(numbers: range, real: np.ndarray) -> Iterator[np.ndarray]:
    """A question without a vector of its own gets one that is as near to a real one as two of an encoder usually are:
    0.7, of which 1 is the same."""
    chance = np.random.default_rng(numbers.start)
    for number in numbers:
        if number < len(real):
            yield real[number]
        else:
            noise = chance.standard_normal(real.shape[1])
            near = real[number % len(real)] + noise / np.linalg.norm(noise)
            yield near / np.linalg.norm(near)


def bytes_of_table() -> tuple[int, int]:
    """(table, its indexes)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_table_size('semcache_cacheentry'), pg_indexes_size('semcache_cacheentry')")
        table, indexes = cursor.fetchone()
    return int(table), int(indexes)


def run_long(sql: str) -> None:
    """A statement that takes as long as it takes, unlike those of the site."""
    with _unhurried(), connection.cursor() as cursor:
        cursor.execute(sql)


def topic(number: int) -> str:
    """What a question is about, each its own: something to do, or a made-up word. By letters, because a long number
    would make a question personal."""
    if number < NUM_REAL:
        return f"{VERBS[number // len(THINGS)]} {THINGS[number % len(THINGS)]}"
    return f"use {letters(number)}"


def letters(number: int) -> str:
    """A word for a number, each its own; no word of any language that a rule might know."""
    digits = [(number // 20**place) % 20 for place in range(5)]
    return "x" + "".join("bcdfghjklmnpqrstvwxz"[digit] for digit in digits)


@contextmanager
def _unhurried() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        yield
        cursor.execute("RESET statement_timeout")


def _row(kind: Kind, rule: Rule, number: int, vector: np.ndarray, created_at: datetime) -> Sequence[Any]:
    question = kind.question(number)
    look = Look(question, canonical(question.text))
    look.rule = rule
    look.enter_scope()
    scope, key = look.home
    values = {
        "scope": scope.digest(), "prompt_sha256": key, "question": look.text, "answer": ANSWER,
        "embedding": Vector(vector).to_binary(), "rule_id": rule.id, "sharing": kind.name, "tenant": question.tenant,
        "owner": question.owner, "model_revision": question.model_revision, "embedder": kind.embedder,
        "token_ids": [], "tokenizer": "", "num_tokens": 0, "is_pinned": False, "created_at": created_at,
        "expires_at": created_at + timedelta(days=1),
    }  # fmt: skip
    return [values[name] for name in COLUMNS]
