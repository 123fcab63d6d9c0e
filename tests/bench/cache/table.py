"""A table of the wanted size, filled as the door would fill it: half private entries of many owners, half shared ones.

Scopes and keys are the look-up's own. The first questions are real ones with their real vectors; they are those that
are asked. All others stand for the mass: made-up words with random vectors. Knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from semcache.decision import Question
from semcache.look import Look
from semcache.models import CacheEntry, CacheRule
from semcache.rules.policy import Rule
from semcache.rules.rulebook import as_value
from semcache.service import forget_rules
from semcache.text.normalize import canonical

# So many questions of each half are real ones.
NUM_REAL = 200
# An owner's scope is 1 % of the private half, but never fewer rows than this.
MIN_PER_OWNER = 10
# Small enough for the site's time limit of a statement while the vector index is there.
BATCH = 500
VERBS = (
    "archive", "print", "collect", "share", "rename", "encrypt", "restore", "schedule", "publish", "merge", "compare",
    "annotate", "delegate", "approve", "record", "convert", "monitor", "duplicate", "inspect", "transcribe",
)  # fmt: skip
THINGS = (
    "contracts", "photographs", "spreadsheets", "meetings", "recipes", "songs", "maps", "drawings", "newsletters",
    "podcasts",
)  # fmt: skip
INSERT = """
INSERT INTO semcache_cacheentry (scope, prompt_sha256, question, answer, embedding, rule_id, sharing, tenant, owner,
       model_revision, embedder, token_ids, tokenizer, num_tokens, is_pinned, created_at, expires_at)
SELECT scope, key, question, repeat('An answer of the usual length. ', 20),
       (SELECT array_agg(random() - 0.5) FROM generate_series(1, %(dim)s) WHERE question <> '')::vector,
       %(rule)s, %(sharing)s, 'bench', owner, '1', %(embedder)s, '{}', '', 0, false,
       statement_timestamp() - interval '1 minute', statement_timestamp() + interval '1 day'
  FROM unnest(%(scopes)s::text[], %(keys)s::text[], %(questions)s::text[], %(owners)s::text[])
       AS row (scope, key, question, owner)"""


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
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE semcache_cacheentry, semcache_cacheentryuse")
    CacheRule.objects.all().delete()
    CacheRule.objects.create(name="private", keywords=["plans"], sharing="private", capacity=10**6)
    CacheRule.objects.create(name="public", keywords=["prices"], sharing="public", capacity=10**6)
    forget_rules()


def fill(kind: Kind, numbers: Sequence[int]) -> None:
    row = CacheRule.objects.get(name=kind.name)
    rule = as_value(row)
    for start in range(0, len(numbers), BATCH):
        _insert(kind, rule, numbers[start : start + BATCH])


def set_vectors(kind: Kind, vectors: Mapping[int, Sequence[float]]) -> None:
    """The real vectors of these questions."""
    for number, vector in vectors.items():
        text = canonical(kind.question(number).text)
        CacheEntry.objects.filter(question=text).update(embedding=list(vector))


def bytes_of_table() -> tuple[int, int]:
    """(table, its indexes)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_table_size('semcache_cacheentry'), pg_indexes_size('semcache_cacheentry')")
        table, indexes = cursor.fetchone()
    return int(table), int(indexes)


def run_long(sql: str, values: Mapping[str, object] | None = None) -> None:
    """A statement that takes as long as it takes, unlike those of the site."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(sql, values)
        cursor.execute("RESET statement_timeout")


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


def _insert(kind: Kind, rule: Rule, numbers: Iterable[int]) -> None:
    places = []
    for number in numbers:
        question = kind.question(number)
        look = Look(question, canonical(question.text))
        look.rule = rule
        look.enter_scope()
        scope, key = look.home
        places.append((scope.digest(), key, look.text, question.owner))
    scopes, keys, questions, owners = (list(column) for column in zip(*places, strict=True))
    values = {
        "dim": kind.dim, "embedder": kind.embedder, "rule": rule.id, "sharing": kind.name, "scopes": scopes,
        "keys": keys, "questions": questions, "owners": owners,
    }  # fmt: skip
    run_long(INSERT, values)
