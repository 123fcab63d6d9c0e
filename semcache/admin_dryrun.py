"""What a rule would have matched, before it is saved: tried on the last questions of the log.

The log knows the words of what may be shared and of what is stored; other questions are not among them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from semcache import policy, question_log
from semcache.models import CacheRule
from semcache.policy import Rule
from semcache.question_log import Asked
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
    rules = policy.compiled([tried, *others], on_bad=lambda rule, problem: None)
    return _counted(tried.id, rules, question_log.recent(NUM_QUESTIONS))


def _counted(tried_id: int, rules: Sequence[Rule], asked: Sequence[Asked]) -> DryRun:
    tried = next(rule for rule in rules if rule.id == tried_id)
    matched = [one for one in asked if tried.matches(one.question, one.tenant, one.model)]
    decided = [
        one.question for one in matched if policy.choose(rules, one.question, one.tenant, one.model) is tried
    ]
    return DryRun(len(asked), len(matched), len(decided), tuple(decided[:NUM_SHOWN]))
