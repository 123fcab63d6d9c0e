"""What a rule would have matched, before it is saved: tried on the questions whose answers are stored now.

Those are not all that was asked: what no rule let in, and what has left the cache, is not among them. Their model is
known by its revision only, so a rule's model is not judged.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from semcache import policy
from semcache.models import CacheEntry, CacheRule
from semcache.policy import Rule
from semcache.rulebook import as_value, read_rules

NUM_QUESTIONS = 1000
NUM_SHOWN = 20


@dataclass(frozen=True, slots=True)
class DryRun:
    """`num_decided` are the matched questions that no earlier rule takes; `shown` are some of those."""

    num_questions: int
    num_matched: int
    num_decided: int
    shown: tuple[str, ...]


def dry_run(row: CacheRule) -> DryRun:
    """The rule as `row` has it, saved or not, on the last questions. Its pattern must be valid."""
    # A new rule has no id yet; it will be the last at equal precedence.
    tried = replace(as_value(row), id=row.pk or sys.maxsize)
    others = [rule for rule in read_rules() if rule.id != tried.id]
    rules = policy.compiled(
        [replace(rule, model="") for rule in (tried, *others)], on_bad=lambda rule, problem: None
    )
    newest = CacheEntry.objects.order_by("-created_at").values_list("question", "tenant")[:NUM_QUESTIONS]
    return _counted(tried.id, rules, list(newest))


def _counted(tried_id: int, rules: Sequence[Rule], asked: Sequence[tuple[str, str]]) -> DryRun:
    tried = next(rule for rule in rules if rule.id == tried_id)
    matched = [(text, tenant) for text, tenant in asked if tried.matches(text, tenant, "")]
    decided = [text for text, tenant in matched if policy.choose(rules, text, tenant, "") is tried]
    return DryRun(len(asked), len(matched), len(decided), tuple(decided[:NUM_SHOWN]))
