"""The page "Test a question" and the same as JSON: the whole way of one question through the cache, step by step.

Formats what `explain` finds out; decides nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from semcache.admin.words import CHECKS, OUTCOMES, PRIVATE, REASONS, STEPS, worded
from semcache.decision import Candidate, Decision
from semcache.explain import Explanation, decision_on, explained
from semcache.models import CacheCase, CacheEntry
from semcache.quality import cases


@dataclass(frozen=True, slots=True)
class Shown:
    """A stored answer that was looked at. `entry` is None when it has gone meanwhile; `objections` are the guard's."""

    entry_id: int
    question: str
    similarity: float
    score: float | None
    is_served: bool
    objections: tuple[str, ...]
    was_guarded: bool
    sharing: str
    entry: CacheEntry | None

    @property
    def raised(self) -> str:
        """The lowest threshold that would not have served it; "" where no threshold decided."""
        above = (int(self.similarity * 10_000) + 1) / 10_000
        return f"{above:.4f}" if self.is_served and above <= 1 else ""


@dataclass(frozen=True, slots=True)
class Told:
    """A decision in words; `steps` are (what, milliseconds)."""

    decision: Decision
    outcome: str
    reason: str
    shown: tuple[Shown, ...]
    steps: tuple[tuple[str, float], ...]


def told(values: dict[str, str]) -> tuple[Explanation, Told | None]:
    """What `TryQuestionForm` asks for; no decision while there is no engine to ask."""
    decision = decision_on(values["text"], values["tenant"], values["owner"], values["model"])
    explanation = explained(
        values["text"],
        values["tenant"],
        values["model"],
        values["stored"],
        decision.examples if decision else (),
    )
    return explanation, None if decision is None else _in_words(decision)


def shared(explanation: Explanation) -> str:
    """Whether a rule may share the answer, and why not, in words."""
    why = explanation.why_private
    return str(_("yes")) if why is None else f"{_('no')}: {worded(PRIVATE, why)}"


def compared(explanation: Explanation) -> list[tuple[str, bool, str]]:
    """(check, whether it passed, why not) for the question that this one was compared with."""
    return [(worded(CHECKS, one.check), one.passed, one.why) for one in explanation.verdicts]


def cases_of(values: dict[str, str], found: Told | None) -> dict[str, str]:
    """Queries by which the form of a regression case begins: with what has just happened (`case`), and with an answer
    that must never be served (`never`), which the page adds by its entry."""
    if found is None:
        return {}
    decision = found.decision
    asked = {"question": values["text"]} | {name: values[name] for name in ("tenant", "owner", "model")}
    came = asked | {"expected": cases.KINDS[decision.outcome].value}
    came |= {"rule": decision.rule.name} if decision.rule else {}
    came |= {"entry": str(decision.hit.entry_id)} if decision.hit else {}
    never = asked | {"expected": CacheCase.Expected.NEVER.value}
    return {"case": urlencode(came), "never": urlencode(never)}


def as_json(explanation: Explanation, found: Told | None, *, may_read: bool) -> dict[str, Any]:
    """Stable codes beside the words; times in milliseconds. Questions of others only where one `may_read` entries."""
    return {
        "text": explanation.text,
        "language": explanation.language,
        "lasting": explanation.lasting,
        "stands_alone": explanation.stands_alone,
        "why_private": explanation.why_private,
        "rules": [
            {
                "id": tried.rule.id, "name": tried.rule.name, "priority": tried.rule.priority,
                "mode": tried.rule.mode, "is_match": tried.is_match, "is_winner": tried.is_winner,
                "problem": tried.problem,
                "nearest_example": None if tried.likeness is None else asdict(tried.likeness),
            }
            for tried in explanation.rules
        ],
        "compared": [asdict(verdict) for verdict in explanation.verdicts],
        "decision": None if found is None else _decision_json(found, may_read),
    }  # fmt: skip


def _decision_json(found: Told, may_read: bool) -> dict[str, Any]:
    decision = found.decision
    return {
        "outcome": decision.outcome, "reason": decision.reason, "why": found.reason,
        "rule": None if decision.rule is None else decision.rule.name, "sharing": decision.sharing,
        "candidates": [
            {
                "entry": shown.entry_id, "question": shown.question if may_read else None,
                "similarity": round(shown.similarity, 4), "verifier_score": shown.score,
                "objections": list(shown.objections) if may_read else len(shown.objections),
                "is_served": shown.is_served, "sharing": shown.sharing,
            }
            for shown in found.shown
        ],
        "steps_ms": {name: round(ms, 3) for name, ms in decision.steps},
    }  # fmt: skip


def _in_words(decision: Decision) -> Told:
    looked_at = decision.candidates or _exact(decision)
    entries = (
        CacheEntry.objects.select_related("rule")
        .defer("embedding", "token_ids")
        .in_bulk([one.entry_id for one in looked_at])
    )
    return Told(
        decision,
        worded(OUTCOMES, decision.outcome),
        worded(REASONS, decision.reason),
        tuple(_shown(one, entries.get(one.entry_id)) for one in looked_at),
        tuple((worded(STEPS, name), ms) for name, ms in decision.steps),
    )


def _exact(decision: Decision) -> tuple[Candidate, ...]:
    """An exact match, also one that a shadow rule kept back."""
    hit = decision.hit or decision.would_hit
    if hit is None:
        return ()
    return (
        Candidate(
            hit.entry_id,
            hit.question,
            hit.similarity,
            is_served=decision.hit is not None,
            sharing=hit.sharing,
        ),
    )


def _shown(candidate: Candidate, entry: CacheEntry | None) -> Shown:
    return Shown(
        entry_id=candidate.entry_id,
        question=candidate.question,
        similarity=candidate.similarity,
        score=candidate.score,
        is_served=candidate.is_served,
        objections=tuple(
            f"{worded(CHECKS, verdict.check)}: {verdict.why}"
            for verdict in candidate.verdicts
            if not verdict.passed
        ),
        was_guarded=bool(candidate.verdicts),
        sharing=candidate.sharing,
        entry=entry,
    )
