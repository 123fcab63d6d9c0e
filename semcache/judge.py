"""Which of the nearest neighbours may answer: the rule's thresholds first, the guard's evidence second.

Pure: neighbours and rule are values. A similarity alone never serves, because opposites score as high as
paraphrases; it only picks who is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semcache import guard
from semcache.decision import Candidate, Hit, Reason
from semcache.policy import Rule


@dataclass(frozen=True, slots=True)
class Judgement:
    """`hit` is the neighbour to serve, or None for the reason given; `candidates` explain every neighbour."""

    hit: Hit | None
    reason: Reason
    candidates: tuple[Candidate, ...]


def judge(rule: Rule, text: str, neighbours: Sequence[Hit]) -> Judgement:
    """Serve the first neighbour, best first, that thresholds and guard let through.

    Between the two thresholds only a second opinion could serve; without one the grey zone is a miss.
    """
    served: Hit | None = None
    candidates = []
    for hit in neighbours:
        is_near = hit.similarity >= rule.verify_similarity
        verdicts = guard.verdicts(hit.question, text) if is_near else ()
        is_served = served is None and hit.similarity >= rule.accept_similarity and guard.may_serve(verdicts)
        served = hit if is_served else served
        candidates.append(Candidate(hit.entry_id, hit.question, hit.similarity, verdicts, is_served))
    return Judgement(served, _reason(rule, served, candidates), tuple(candidates))


def _reason(rule: Rule, served: Hit | None, candidates: Sequence[Candidate]) -> Reason:
    if served is not None:
        return Reason.SIMILAR
    if not candidates:
        return Reason.NO_NEIGHBOUR
    best = candidates[0].similarity
    if best >= rule.accept_similarity:
        return Reason.GUARDED
    return Reason.GREY_ZONE if best >= rule.verify_similarity else Reason.BELOW_THRESHOLD
