"""What the product serves as it comes: its own judge, a new rule's thresholds, and the verifier where it is given.

Knows how a labelled question becomes what the judge looks at. Does not know how figures are made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from semcache.decision import Hit
from semcache.evaluation.vectors import Verify
from semcache.judge import judge, second_opinion
from semcache.rules.policy import Rule

# A new rule's; the test compares.
RULE = Rule(id=1, name="as shipped", accept_similarity=0.95, verify_similarity=0.90)
GAP = RULE.accept_similarity - RULE.verify_similarity
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its stored neighbours (best first), and what it hangs on beside its words."""

    text: str
    neighbours: tuple[Hit, ...]
    context: tuple[str, ...] = ()


def neighbour(
    number: int, question: str, answer: str, similarity: float, context: tuple[str, ...] = ()
) -> Hit:
    return Hit(
        entry_id=number, question=question, answer=answer, token_ids=(), tokenizer="", num_tokens=1,
        created_at=_WHEN, age_s=0, similarity=similarity, context=context,
    )  # fmt: skip


def served(asked: Sequence[Asked], verify: Verify | None) -> Iterator[Hit | None]:
    """For each question the stored one whose answer is given, or None."""
    judgements = [judge(RULE, one.text, one.neighbours, asked=one.context) for one in asked]
    if verify is None:
        yield from (judgement.hit for judgement in judgements)
        return
    scores = iter(verify([pair for judgement in judgements for pair in judgement.pairs]))
    for judgement in judgements:
        opinion = [float(next(scores)) for _ in judgement.pairs]
        yield second_opinion(judgement, opinion).hit if opinion else judgement.hit
