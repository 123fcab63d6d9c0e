"""The budget of wrong answers: which answers are checked, what the checks say, and a rule that tightens itself.

An answer served by meaning is wrong when the model, asked once more, says something else (a proxy, labelled as one),
when its reader's thumb goes down, or when staff says so. The first kind is a random sample and tells the share by
itself. The others are no sample: they are counted against all answers that the rule served by meaning meanwhile, which
is the least that was wrong. A rule tightens when either is past its limit: first every answer by meaning needs a second
opinion, then none is served. What counts is a week old at most, and not older than the rule's last tightening or
loosening. Synchronous, for database threads.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import connection, transaction
from django.db.models.functions import Now

from semcache.models import CacheCheck, CacheRule
from semcache.quality import budget_estimate
from semcache.quality.budget_estimate import Estimate, estimate
from semcache.rules.policy import Mode, Rule

logger = logging.getLogger(__name__)
DAYS = 7
# For thresholds, which are set by more than what counts against the rule now.
KEPT_DAYS = 90
BATCH = 500
# Until so many checks in a row were right, this many times as many answers are checked: a rule that is new, was
# loosened or has just been caught is watched more closely. Whether an answer is checked never depends on that answer.
CALM_AFTER = 25
DENSER = 5
Kind, Tightened = CacheCheck.Kind, CacheRule.Tightened
NEXT = {Tightened.NO: Tightened.VERIFY, Tightened.VERIFY: Tightened.EXACT}

_EVIDENCE_FROM = f"greatest(statement_timestamp() - interval '{DAYS} days', rule.tightened_at)"
# Two judgements of one answer: it stays in the sample, and is wrong there when either says so. A person's latest word
# replaces the one before.
_RECORD = """
INSERT INTO semcache_cachecheck AS known (rule_id, generation, entry, kind, is_wrong, similarity, score, checked_at)
VALUES (%(rule_id)s, %(generation)s, %(entry)s, %(kind)s, %(is_wrong)s, %(similarity)s, %(score)s,
        coalesce(%(served_at)s, statement_timestamp()))
ON CONFLICT (generation) DO UPDATE SET
       kind = CASE WHEN 'sampled' IN (known.kind, excluded.kind) THEN 'sampled' ELSE excluded.kind END,
       is_wrong = excluded.is_wrong OR (known.is_wrong AND 'sampled' IN (known.kind, excluded.kind)),
       similarity = coalesce(known.similarity, excluded.similarity), score = coalesce(known.score, excluded.score)"""
# The hours of the served answers count whole.
_EVIDENCE = f"""
SELECT rule.id,
       count(one.id) FILTER (WHERE one.kind = 'sampled') AS num_sampled,
       count(one.id) FILTER (WHERE one.kind = 'sampled' AND one.is_wrong) AS num_sampled_wrong,
       count(one.id) FILTER (WHERE one.kind <> 'sampled' AND one.is_wrong) AS num_reported,
       (SELECT coalesce(sum(hour.semantic_hits), 0)::bigint FROM semcache_cacherulehour hour
         WHERE hour.rule_id = rule.id AND hour.hour >= date_trunc('hour', {_EVIDENCE_FROM}, 'UTC')) AS num_served
  FROM semcache_cacherule rule
  LEFT JOIN semcache_cachecheck one ON one.rule_id = rule.id AND one.checked_at >= {_EVIDENCE_FROM}
 WHERE rule.id = ANY(%(ids)s) GROUP BY rule.id"""  # noqa: S608 - this module's numbers
_VERDICTS = f"""
SELECT one.kind, one.is_wrong FROM semcache_cachecheck one JOIN semcache_cacherule rule ON rule.id = one.rule_id
 WHERE rule.id = %(rule_id)s AND one.checked_at >= {_EVIDENCE_FROM}
 ORDER BY one.checked_at, one.id"""  # noqa: S608 - the same
_CALM = f"""
SELECT rule.id FROM semcache_cacherule rule
 WHERE (SELECT count(*) FILTER (WHERE NOT last.is_wrong)
          FROM (SELECT one.is_wrong FROM semcache_cachecheck one
                 WHERE one.rule_id = rule.id AND one.kind = 'sampled' AND one.checked_at >= {_EVIDENCE_FROM}
                 ORDER BY one.checked_at DESC, one.id DESC LIMIT {CALM_AFTER}) last) = {CALM_AFTER}"""  # noqa: S608


_DELETE_OLD = f"""
DELETE FROM semcache_cachecheck
 WHERE id IN (SELECT id FROM semcache_cachecheck
               WHERE checked_at < statement_timestamp() - interval '{KEPT_DAYS} days'
               ORDER BY id LIMIT %(batch)s FOR UPDATE SKIP LOCKED)"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is held against a rule: of `sampled` answers, and of all `served` those that somebody called wrong."""

    sampled: Estimate
    reported: Estimate

    def is_past(self, limit: float) -> bool:
        return any(
            budget_estimate.is_past(limit, found.num, found.num_wrong)
            for found in (self.sampled, self.reported)
        )


NO_EVIDENCE = Evidence(estimate(0, 0), estimate(0, 0))


def wants_check(rule: Rule) -> bool:
    """Whether the answer that this rule serves by meaning now is to be made once more and compared."""
    return random.random() < rule.check_share  # noqa: S311 - a sample, not a secret


def share_checked(check_share: float, *, is_calm: bool) -> float:
    """The share of answers to check now, where `check_share` is the one of calm times."""
    return check_share if is_calm else min(1.0, check_share * DENSER)


def calm_rules() -> frozenset[int]:
    """The rules whose last checks were all right."""
    with connection.cursor() as cursor:
        cursor.execute(_CALM)
        return frozenset(row[0] for row in cursor.fetchall())


def record(  # noqa: PLR0913 - a row, named column by column
    rule_id: int,
    kind: str,
    is_wrong: bool,
    *,
    generation: UUID | None = None,
    entry: int | None = None,
    similarity: float | None = None,
    score: float | None = None,
    served_at: datetime | None = None,
) -> None:
    """Note whether an answer served by meaning was right; the rule tightens itself when that was too much.

    Once for each `generation` that repeated the stored answer. What was `served_at` before the rule last tightened or
    was loosened is kept, and does not count. A rule that is gone is told nothing.
    """
    values: dict[str, Any] = {
        "rule_id": rule_id, "kind": Kind(kind).value, "is_wrong": is_wrong, "generation": generation, "entry": entry,
        "similarity": similarity, "score": score, "served_at": served_at,
    }  # fmt: skip
    with transaction.atomic():
        # One at a time for each rule: of two checks that are both needed to reach the limit, one must see the other.
        rule = CacheRule.objects.select_for_update(no_key=True).filter(pk=rule_id).first()
        if rule is None:
            return
        with connection.cursor() as cursor:
            cursor.execute(_RECORD, values)
        if is_wrong:
            _tighten_if_past(rule)


def evidence(rule_ids: list[int]) -> dict[int, Evidence]:
    """What counts now, for each of the rules that exist."""
    with connection.cursor() as cursor:
        cursor.execute(_EVIDENCE, {"ids": rule_ids})
        rows = cursor.fetchall()
    return {
        rule_id: Evidence(
            estimate(num_sampled, num_sampled_wrong),
            # Hits are counted a little later than they are served.
            estimate(max(num_served, num_reported), num_reported),
        )
        for rule_id, num_sampled, num_sampled_wrong, num_reported, num_served in rows
    }


def verdicts(rule_id: int) -> list[tuple[str, bool]]:
    """(kind, whether it said wrong) of the checks that count now, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_VERDICTS, {"rule_id": rule_id})
        return list(cursor.fetchall())


def loosen(rule_id: int) -> bool:
    """Take back what the rule did of its own accord; earlier evidence no longer counts. False: it did nothing."""
    tightened = CacheRule.objects.filter(pk=rule_id).exclude(tightened=Tightened.NO)
    return tightened.update(tightened=Tightened.NO, tightened_at=Now(), updated_at=Now()) == 1


def delete_old_checks(batch: int = BATCH) -> int:
    """Delete up to `batch` of the checks that nothing rests on any more; how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_OLD, {"batch": batch})
        return int(cursor.rowcount)


def _tighten_if_past(rule: CacheRule) -> None:
    step = NEXT.get(Tightened(rule.tightened))
    if step is None or rule.mode != Mode.SEMANTIC:
        return
    found = evidence([rule.pk])[rule.pk]
    if not found.is_past(rule.wrong_share):
        return
    CacheRule.objects.filter(pk=rule.pk).update(tightened=step, tightened_at=Now(), updated_at=Now())
    said = (
        f"tightened: {rule.tightened or 'no'} -> {step}; {_in_numbers(found)}; allowed {rule.wrong_share:.2%}"
    )
    logger.warning("cache rule %d (%s) tightened itself: %s", rule.pk, rule.name, said)
    if apps.is_installed("django.contrib.admin"):
        from semcache.admin.audit import note_by_itself  # not importable without the admin

        note_by_itself(rule, said)


def _in_numbers(found: Evidence) -> str:
    sampled, reported = found.sampled, found.reported
    return (
        f"wrong of those checked {sampled.num_wrong}/{sampled.num}, at least {sampled.low:.2%}; "
        f"called wrong of those served {reported.num_wrong}/{reported.num}, at least {reported.low:.2%}"
    )
