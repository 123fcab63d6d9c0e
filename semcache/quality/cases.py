"""Regression cases: questions with what the cache must do with them, asked again whenever the rules have changed.

A case is judged by the decision that every question gets, uncounted. It is due when the rules are not those that it
was last judged by, however they changed: on a page, by a program or of their own accord. What the cache could not
decide (no engine, out of time) judges nothing; the case stays due. Knows no pages and no files.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from enum import StrEnum

from django.db.models.functions import Now

from semcache import lending, service
from semcache.decision import Decision, Hit, Outcome, Reason
from semcache.explain import decided
from semcache.lending import Asked
from semcache.models import CacheCase
from semcache.rules.rulebook import read_rules
from semcache.text.normalize import canonical, clean, sha256_of

logger = logging.getLogger(__name__)

Expected, State = CacheCase.Expected, CacheCase.State
# Each takes a look-up's time after every change of a rule.
MAX_CASES = 1000
# What says what is asked and expected; a note does not.
DEFINING = ("question", "tenant", "owner", "model", "expected", "rule", "stored_question", "answer_part")
# The cache was in trouble: no word about the rules.
UNDECIDED = frozenset(
    {Reason.TIMEOUT, Reason.EMBEDDER_FAILED, Reason.VERIFIER_FAILED, Reason.STORE_FAILED, Reason.RESTING}
)
KINDS = {
    Outcome.HIT_EXACT: Expected.HIT,
    Outcome.HIT_SEMANTIC: Expected.HIT,
    Outcome.MISS: Expected.MISS,
    Outcome.BYPASS: Expected.BYPASS,
}


class Problem(StrEnum):
    """Why a case failed."""

    OUTCOME = "outcome"
    RULE = "rule"
    QUESTION = "question"  # the answer to another stored question was served
    ANSWER = "answer"  # the words are not in the answer that was served
    SERVED = "served"  # what must never be served was


def definition_of(case: CacheCase) -> str:
    """The same for cases that ask and expect the same."""
    return sha256_of(*(str(getattr(case, name)) for name in DEFINING))


def problems_of(case: CacheCase, decision: Decision) -> list[Problem]:
    """What is not as the case expects; [] when it passed."""
    found = []
    if case.rule and (decision.rule is None or decision.rule.name != case.rule):
        found.append(Problem.RULE)
    if case.expected == Expected.NEVER:
        is_served = decision.hit is not None and not _otherwise(case, decision.hit)
        return [*found, Problem.SERVED] if is_served else found
    if KINDS[decision.outcome] != case.expected:
        return [Problem.OUTCOME, *found]
    return found if decision.hit is None else found + _otherwise(case, decision.hit)


def _otherwise(case: CacheCase, hit: Hit) -> list[Problem]:
    """In what the served answer is not the one that the case names."""
    found = []
    if case.stored_question and canonical(case.stored_question) != canonical(hit.question):
        found.append(Problem.QUESTION)
    if case.answer_part and _words(case.answer_part) not in _words(hit.answer):
        found.append(Problem.ANSWER)
    return found


def _words(text: str) -> str:
    return " ".join(clean(text).split()).casefold()


def rules_key() -> str:
    """Names the rules as they are in the database now, as far as they decide."""
    told = [asdict(rule) for rule in read_rules()]
    for rule in told:
        del rule["check_share"], rule["search"]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def run_due(ends_at: float, clock: Callable[[], float] = time.monotonic) -> int:
    """Judge those that are due, until `ends_at`; how many were. For workers.

    Cases that staff asked for go first and at once; the others leave a busy engine alone.
    """
    asked = lending.run(lending.lent, "", "", "")
    if asked is None:
        return 0
    key = _begun()
    num_judged = 0
    for case in CacheCase.objects.exclude(rules_key=key).order_by("rules_key", "pk")[:MAX_CASES]:
        is_hurried = case.rules_key == ""
        if clock() >= ends_at or (not is_hurried and lending.run(_is_busy, asked)):
            break
        num_judged += run(case, key)
    return num_judged


def run_all() -> Iterator[tuple[CacheCase, bool]]:
    """Judge every case here and now: each as it is afterwards, and whether it could be judged."""
    key = _begun()
    for case in CacheCase.objects.order_by("pk")[:MAX_CASES]:
        yield case, run(case, key)


def run(case: CacheCase, key: str) -> bool:
    """False when it can't be judged now, or was changed meanwhile."""
    try:
        decision = lending.run(decided, case.question, case.tenant, case.owner, case.model)
    except OSError as error:
        logger.warning("case %d was not judged: %s", case.pk, error)
        return False
    if decision is None or decision.reason in UNDECIDED:
        return False
    found = problems_of(case, decision)
    case.state = State.FAILED if found else State.PASSED
    case.problems = [problem.value for problem in found]
    case.got_outcome, case.got_reason = decision.outcome.value, decision.reason.value
    case.got_rule = decision.rule.name if decision.rule else ""
    case.got_entry = decision.hit.entry_id if decision.hit else None
    return _kept(case, key)


def mark_due(cases: Iterable[int] | None = None) -> int:
    """Have these judged again, or all; how many there are."""
    every = CacheCase.objects.all()
    return (every if cases is None else every.filter(pk__in=cases)).update(rules_key="")


def num_failing() -> int:
    return CacheCase.objects.filter(state=State.FAILED).count()


def _begun() -> str:
    """The key of the rules, none of which this process knows from before."""
    key = rules_key()
    service.forget_rules()
    return key


def _kept(case: CacheCase, key: str) -> bool:
    """Not over another definition: that one is due."""
    told = ("state", "problems", "got_outcome", "got_reason", "got_rule", "got_entry")
    values = {name: getattr(case, name) for name in told}
    same = CacheCase.objects.filter(pk=case.pk, definition=case.definition)
    if not same.update(**values, rules_key=key, ran_at=Now()):
        return False
    case.refresh_from_db(fields=["rules_key", "ran_at"])
    return True


async def _is_busy(asked: Asked) -> bool:
    return asked.is_busy is not None and await asked.is_busy()
