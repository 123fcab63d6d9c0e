"""How a regression case went, in an operator's words, and as JSON."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from semcache.admin.case_forms import FIELDS, OF_ENTRIES
from semcache.admin.words import OUTCOMES, REASONS, worded
from semcache.models import CacheCase
from semcache.quality.cases import Problem

PROBLEMS: dict[Problem, Any] = {
    Problem.OUTCOME: _("expected was: %(expected)s"),
    Problem.RULE: _("the rule “%(rule)s” decides, not “%(meant)s”"),
    Problem.QUESTION: _("the answer to another stored question was served"),
    Problem.ANSWER: _("the words are not in the answer that was served"),
    Problem.SERVED: _("what must never be served was served"),
}


def why(case: CacheCase) -> str:
    """Why it failed; "" where it did not."""
    values = {
        "expected": case.get_expected_display(),
        "rule": case.got_rule or _now("none"),
        "meant": case.rule,
    }
    return "; ".join(worded(PROBLEMS, problem) % values for problem in case.problems)


def came(case: CacheCase) -> str:
    """What the cache decided when it was last asked; "" where it was not."""
    if not case.got_outcome:
        return ""
    return f"{worded(OUTCOMES, case.got_outcome)}: {worded(REASONS, case.got_reason)}"


def case_json(case: CacheCase, *, may_read: bool) -> dict[str, Any]:
    """Stable codes beside the words. Words of stored questions and answers only where one `may_read` entries."""
    named = {name: getattr(case, name) for name in FIELDS if may_read or name not in OF_ENTRIES}
    return dict.fromkeys(OF_ENTRIES) | named | {
        "id": case.pk, "state": case.state, "ran_at": case.ran_at and case.ran_at.isoformat(),
        "is_due": not case.rules_key, "problems": case.problems, "why": why(case),
        "got": {
            "outcome": case.got_outcome, "reason": case.got_reason, "rule": case.got_rule, "entry": case.got_entry,
        },
    }  # fmt: skip
