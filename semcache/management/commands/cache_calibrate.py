"""`manage.py cache_calibrate`: thresholds that keep each rule within its limit of wrong answers."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict, dataclass
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models.functions import Now

from semcache import service
from semcache.admin.audit import note_by_itself
from semcache.judge import VERIFIED_FROM
from semcache.models import CacheRule
from semcache.quality import calibration, calibration_rows
from semcache.quality.calibration import Proposal, Zone


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A rule's two zones. The verifier's threshold is the same for all rules, so it is told and never written."""

    rule: CacheRule
    accept: Proposal
    verify: Proposal

    @property
    def changes(self) -> dict[str, float]:
        """The rule's own thresholds that should change, in order: the lower one never above the other."""
        wanted: dict[str, float] = {}
        if self.accept.proposed is not None:
            wanted["accept_similarity"] = self.accept.proposed.similarity
        if self.verify.proposed is not None:
            wanted["verify_similarity"] = self.verify.proposed.similarity
        accept = wanted.get("accept_similarity", self.rule.accept_similarity)
        wanted["verify_similarity"] = min(
            wanted.get("verify_similarity", self.rule.verify_similarity), accept
        )
        return {name: value for name, value in wanted.items() if value != getattr(self.rule, name)}


class Command(BaseCommand):
    help = (
        "Proposes each rule's similarity thresholds, and the verifier's, from checks, complaints, shadow look-ups and "
        "the log: the ones that serve most while the wrong share's upper bound (95 %) is within the rule's limit."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--rule", action="append", metavar="NAME", help="only this rule; may be repeated")
        parser.add_argument(
            "--apply", action="store_true", help="write what is proposed, with a line in the log"
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        found = [calibrated(rule) for rule in _chosen(options["rule"])]
        self.stdout.write(
            json.dumps([as_json(one) for one in found], indent=1) if options["json"] else table(found)
        )
        if options["apply"]:
            for one in found:
                said = apply(one)
                if not options["json"]:
                    self.stdout.write(f"{one.rule.name}: {said or 'left as it is'}")


def calibrated(rule: CacheRule) -> Calibrated:
    checked, seen, limit = calibration_rows.checked(rule.pk), calibration_rows.seen(rule.pk), rule.wrong_share
    accept = calibration.accepted(checked, seen, rule.accept_similarity, limit)
    above = accept.proposed.similarity if accept.proposed else rule.accept_similarity
    now = min(rule.verify_similarity, above), VERIFIED_FROM
    return Calibrated(rule, accept, calibration.verified(checked, seen, now, above, limit))


def apply(one: Calibrated) -> str:
    """Write the rule's proposed thresholds; what was written, "" for nothing. A rule edited meanwhile is left alone."""
    if not one.changes:
        return ""
    said = "; ".join(f"{name}: {getattr(one.rule, name)} -> {value}" for name, value in one.changes.items())
    with transaction.atomic():
        as_read = CacheRule.objects.filter(
            pk=one.rule.pk,
            accept_similarity=one.rule.accept_similarity,
            verify_similarity=one.rule.verify_similarity,
        )
        if as_read.update(**one.changes, updated_at=Now()) != 1:
            return ""
        note_by_itself(one.rule, f"calibrated: {said}")
    service.forget_rules()
    return said


def _chosen(names: list[str] | None) -> list[CacheRule]:
    rules = list(CacheRule.objects.filter(mode__in=("semantic", "shadow")))
    if names is None:
        return rules
    known = {rule.name: rule for rule in rules}
    missing = [name for name in names if name not in known]
    if missing:
        raise CommandError(f"no rule by meaning is called {', '.join(missing)}")
    return [known[name] for name in names]


def as_json(one: Calibrated) -> dict[str, Any]:
    limit = one.rule.wrong_share
    return {
        "rule": one.rule.name, "limit": limit, "num_needed": calibration.num_needed(limit),
        "accept": _zone_json(one.accept), "verify": _zone_json(one.verify), "changes": one.changes,
    }  # fmt: skip


def _zone_json(proposal: Proposal) -> dict[str, Any]:
    return asdict(proposal) | {"is_change": proposal.is_change}


def table(found: list[Calibrated]) -> str:
    lines = []
    for one in found:
        limit = one.rule.wrong_share
        needed = calibration.num_needed(limit) or "any number of"
        lines.append(
            f"{one.rule.name}: at most {limit:.2%} wrong; {needed} checks without a wrong one would do"
        )
        for zone, proposal in (("accept", one.accept), ("verify", one.verify)):
            lines.append(f"  {zone:7} now       {_line(proposal.now)}")
            told = _line(proposal.proposed) if proposal.proposed else f"nothing: {proposal.reason}"
            lines.append(f"  {'':7} proposed  {told}")
    return "\n".join(lines) or "no rule looks at meaning"


def _line(zone: Zone) -> str:
    score = "" if zone.score is None else f" with a score from {zone.score:.2f}"
    return (
        f"from {zone.similarity:.3f}{score}: wrong {zone.num_wrong}/{zone.num} checked "
        f"({zone.low:.2%} to {zone.high:.2%}), {zone.num_reported} reported, {zone.num_hits} hits in the log"
    )
