"""What a rule would have matched, before it is saved: tried on the last questions of the log.

The log knows the words of what may be shared and of what is stored; other questions are not among them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from asgiref.sync import async_to_sync

from semcache.lending import lent
from semcache.models import CacheRule
from semcache.quality import question_log
from semcache.quality.question_log import Asked
from semcache.rules import policy
from semcache.rules.examples import ExampleBook
from semcache.rules.policy import Rule
from semcache.rules.rulebook import as_value, read_rules

logger = logging.getLogger(__name__)
NUM_QUESTIONS = 1000
NUM_SHOWN = 20
EMBEDDED_AT_ONCE = 50

# The ids of the rules of which an example is near, for each question.
Like = Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class DryRun:
    """`num_decided` are the matched questions that no earlier rule takes; `shown` are some of those.

    `without_examples`: there are example questions, and nobody was there to compare with them.
    """

    num_questions: int
    num_matched: int
    num_decided: int
    shown: tuple[str, ...]
    without_examples: bool = False


def dry_run(row: CacheRule) -> DryRun:
    """The rule as `row` has it, saved or not, on the last questions. Its pattern must be valid."""
    # A new rule has no id yet; it will be the last at equal precedence.
    tried = replace(as_value(row), id=row.pk or sys.maxsize)
    others = [rule for rule in read_rules() if rule.id != tried.id]
    rules = policy.compiled([tried, *others], on_bad=lambda rule, problem: None)
    asked = question_log.recent(NUM_QUESTIONS)
    with_examples = [rule for rule in rules if rule.examples]
    like = _near(asked, with_examples) if with_examples else {}
    found = _counted(tried.id, rules, asked, like or {})
    return replace(found, without_examples=like is None)


def _counted(tried_id: int, rules: Sequence[Rule], asked: Sequence[Asked], like: Like) -> DryRun:
    tried = next(rule for rule in rules if rule.id == tried_id)
    placed = [(one.question, one.tenant, one.model, like.get(one.question, frozenset())) for one in asked]
    matched = [place for place in placed if tried.matches(*place)]
    decided = [place[0] for place in matched if policy.choose(rules, *place) is tried]
    return DryRun(len(asked), len(matched), len(decided), tuple(decided[:NUM_SHOWN]))


def _near(asked: Sequence[Asked], rules: Sequence[Rule]) -> Like | None:
    """None while there is nobody to embed."""
    questions = list(dict.fromkeys(one.question for one in asked))
    try:
        return async_to_sync(_compared)(questions, rules)
    except OSError as error:
        logger.warning("the examples of cache rules were not tried: %s", error)
        return None


async def _compared(questions: Sequence[str], rules: Sequence[Rule]) -> Like | None:
    lender = await lent("", "", "")
    if lender is None:
        return None
    book, like = ExampleBook(), {}
    for start in range(0, len(questions), EMBEDDED_AT_ONCE):
        batch = list(questions[start : start + EMBEDDED_AT_ONCE])
        for question, vector in zip(batch, await lender.embed(batch), strict=True):
            found = await book.compared(rules, vector, lender.question.embedder, lender.embed)
            like[question] = frozenset(one.rule_id for one in found if one.is_near)
    return like
