"""The rules in force, read from the database at most every two seconds per process.

An edited rule therefore acts everywhere within that time, without a restart and without a message.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from semcache.models import CacheRule
from semcache.quality import budget
from semcache.rules import policy
from semcache.rules.policy import BadPattern, Rule

logger = logging.getLogger(__name__)
MAX_AGE_S = 2.0


class RuleBook:
    """Compiled rules with their age."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rules: tuple[Rule, ...] = ()
        self._read_at: float | None = None
        self._reported: set[tuple[int, str]] = set()

    def known(self) -> tuple[Rule, ...] | None:
        """Without a look at the database; None when they were read too long ago."""
        is_known = self._read_at is not None and self._clock() - self._read_at <= MAX_AGE_S
        return self._rules if is_known else None

    def fresh(self) -> tuple[Rule, ...]:
        """For database threads."""
        rules = self.known()
        if rules is None:
            now = self._clock()
            rules = self._rules = policy.compiled(read_rules(), on_bad=self._report)
            self._read_at = now
        return rules

    def forget(self) -> None:
        """Read again at the next question: this process has just changed a rule."""
        self._read_at = None

    def _report(self, rule: Rule, problem: BadPattern) -> None:
        if (rule.id, rule.pattern) not in self._reported:
            self._reported.add((rule.id, rule.pattern))
            logger.warning(
                "cache rule %d (%s) is skipped: its pattern is bad: %s", rule.id, rule.name, problem
            )


def read_rules() -> list[Rule]:
    """Every enabled rule as a plain value, uncompiled."""
    calm = budget.calm_rules()
    return [
        replace(rule, check_share=budget.share_checked(rule.check_share, is_calm=rule.id in calm))
        for rule in map(as_value, CacheRule.objects.filter(is_enabled=True))
    ]


def as_value(row: CacheRule) -> Rule:
    return Rule(
        id=row.pk,
        name=row.name,
        priority=row.priority,
        pattern=row.pattern,
        keywords=tuple(row.keywords),
        examples=tuple(row.examples),
        example_similarity=row.example_similarity,
        tenant=row.tenant,
        model=row.model,
        mode=row.mode,
        sharing=row.sharing,
        ttl_s=row.ttl_s,
        accept_similarity=row.accept_similarity,
        verify_similarity=row.verify_similarity,
        max_temperature=row.max_temperature,
        is_strict=row.is_strict,
        stale_s=row.stale_s,
        check_share=row.check_share,
        tightened=row.tightened,
    )
