"""Which of the nearest neighbours may answer: the rule's thresholds first, the guard's evidence second.

Pure: neighbours, rule and scores are values. A similarity alone never serves, because opposites score as high as
paraphrases; it only picks who is looked at. Between the two thresholds a second opinion must agree, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from semcache import admission, guard
from semcache.decision import Candidate, Hit, Reason
from semcache.guard import Verdict
from semcache.policy import Rule, Tightened

# So many nearest questions with one and the same answer, of some length, show that the answer does not hang on the
# words in which they differ. Three wordings in a list of answers written by hand do so, three times "Yes." does not.
NUM_AGREEING = 3
MIN_AGREED_CHARS = 80
# A verifier's score is its probability that two questions mean the same.
VERIFIED_FROM = 0.9


@dataclass(frozen=True, slots=True)
class Judgement:
    """`hit` is the neighbour to serve, or None for the reason given; `candidates` explain every neighbour.

    Without a hit, `unsure` are those against which there is no evidence, only words without their equal or a similarity
    in the grey zone: a second opinion decides.
    """

    hit: Hit | None
    reason: Reason
    candidates: tuple[Candidate, ...]
    unsure: tuple[Hit, ...] = ()


REFUSED = Verdict("complaints", passed=False, why="somebody said that it is no answer to this question")


def judge(
    rule: Rule, text: str, neighbours: Sequence[Hit], refused: frozenset[int] = frozenset()
) -> Judgement:
    """Serve the first neighbour, best first, that thresholds and guard let through and nobody complained of."""
    served: Hit | None = None
    unsure, candidates = [], []
    for hit in neighbours:
        is_near = hit.similarity >= rule.verify_similarity
        verdicts = guard.verdicts(hit.question, text) if is_near else ()
        if is_near and hit.sharing != "private":
            verdicts += (_length(hit.question, text),)
        is_refused = hit.entry_id in refused
        if is_refused:
            verdicts += (REFUSED,)
        is_agreed = hit is neighbours[0] and agree([near.answer for near in neighbours])
        may_serve = (
            is_near
            and not is_refused
            and (guard.may_serve(verdicts) or (is_agreed and guard.may_be_overruled(verdicts)))
        )
        is_accepted = hit.similarity >= rule.accept_similarity and rule.tightened == Tightened.NO
        is_served = served is None and may_serve and is_accepted
        served = hit if is_served else served
        if is_near and not is_refused and guard.may_be_overruled(verdicts) and not is_served:
            unsure.append(hit)
        candidates.append(
            Candidate(
                hit.entry_id, hit.question, hit.similarity, verdicts, is_served=is_served, sharing=hit.sharing
            )
        )
    reason = _reason(rule, served, unsure, candidates)
    return Judgement(served, reason, tuple(candidates), () if served else tuple(unsure))


def _length(stored: str, asked: str) -> Verdict:
    """What is shared is not reached by a question that hides another one in many more words."""
    is_alike = admission.is_length_alike(stored, asked)
    return Verdict("length", is_alike, "" if is_alike else f"{len(stored)} and {len(asked)} characters")


def agree(answers: Sequence[str]) -> bool:
    """Whether the first of `answers`, nearest first, are one and the same."""
    nearest = answers[:NUM_AGREEING]
    return len(nearest) == NUM_AGREEING and len(set(nearest)) == 1 and len(nearest[0]) >= MIN_AGREED_CHARS


def second_opinion(judgement: Judgement, scores: Sequence[float]) -> Judgement:
    """Serve the unsure neighbour with the highest of `scores` (one for each), the nearer one of equals, if it is
    high enough."""
    score_of = {hit.entry_id: score for hit, score in zip(judgement.unsure, scores, strict=True)}
    best = max(judgement.unsure, key=lambda hit: score_of[hit.entry_id])
    served = best if score_of[best.entry_id] >= VERIFIED_FROM else None
    candidates = tuple(
        replace(
            candidate,
            score=score_of.get(candidate.entry_id),
            is_served=served is not None and candidate.entry_id == served.entry_id,
        )
        for candidate in judgement.candidates
    )
    return Judgement(served, Reason.VERIFIED if served else Reason.DOUBTED, candidates)


def _reason(rule: Rule, served: Hit | None, unsure: Sequence[Hit], candidates: Sequence[Candidate]) -> Reason:
    if served is not None:
        return Reason.SIMILAR
    if not candidates:
        return Reason.NO_NEIGHBOUR
    if unsure and rule.tightened and unsure[0].similarity >= rule.accept_similarity:
        return Reason.TIGHTENED
    if unsure:
        return Reason.GREY_ZONE
    return Reason.GUARDED if candidates[0].similarity >= rule.verify_similarity else Reason.BELOW_THRESHOLD
