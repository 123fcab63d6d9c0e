"""Which of the nearest neighbours may answer: the rule's thresholds first, the guard's evidence second.

Pure: neighbours, rule and scores are values. A similarity alone never serves, because opposites score as high as
paraphrases; it only picks who is looked at. Between the two thresholds a second opinion must agree, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import exp

from semcache.decision import Candidate, Hit, Reason
from semcache.rules.policy import Rule, Tightened
from semcache.text import admission, context, guard
from semcache.text.guard import Verdict

# Several near questions with one and the same answer, of some length, show that the answer does not hang on the words
# in which they differ. Three wordings in a list of answers written by hand do so, three times "Yes." does not. Each of
# the nearest votes with a weight that falls to a third for every VOTE_WIDTH of similarity. Width and share were chosen
# on the train halves of two sets of intents: most is served there while less than 1 % of all is wrong.
NUM_AGREEING = 3
MIN_AGREED_CHARS = 80
VOTE_WIDTH = 0.02
VOTED_FROM = 0.85
# So many pairs are scored within one look-up.
MAX_PAIRS = 16
# A verifier's score is its probability that two questions mean the same. Of 507 traps held out from its training 8 get
# this far (1.6 %), 2 get to 0.9 (docs/semcache/verifier.md).
VERIFIED_FROM = 0.85


@dataclass(frozen=True, slots=True)
class Doubt:
    """A neighbour with no evidence against it, and the pairs of texts that must mean the same for it to serve."""

    hit: Hit
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """`hit` is the neighbour to serve, or None for the reason given; `candidates` explain every neighbour.

    Without a hit, `unsure` are those with only words without their equal or a similarity in the grey zone: a second
    opinion decides.
    """

    hit: Hit | None
    reason: Reason
    candidates: tuple[Candidate, ...]
    unsure: tuple[Doubt, ...] = ()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """What a second opinion is asked about: (stored, asked)."""
        return [pair for doubt in self.unsure for pair in doubt.pairs]


REFUSED = Verdict("complaints", passed=False, why="somebody said that it is no answer to this question")


def judge(
    rule: Rule,
    text: str,
    neighbours: Sequence[Hit],
    refused: frozenset[int] = frozenset(),
    asked: Sequence[str] = (),
) -> Judgement:
    """Serve the first neighbour, best first, that thresholds and guard let through and nobody complained of; where
    several agree on an answer, the nearest of those.

    `asked` is what `text` hangs on beside itself.
    """
    served: Hit | None = None
    unsure: list[Doubt] = []
    candidates = []
    winner = None if asked else voted([(hit.answer, hit.similarity) for hit in neighbours])
    for place, hit in enumerate(neighbours):
        is_near = hit.similarity >= rule.verify_similarity
        verdicts = _evidence(hit, text, is_refused=hit.entry_id in refused) if is_near else ()
        is_clean = guard.may_serve(verdicts)
        # A strict rule takes nobody's word against a missing one.
        may_ask = is_near and (is_clean or (guard.may_be_overruled(verdicts) and not rule.is_strict))
        before = context.compare(hit.context, asked, text) if may_ask else context.Comparison()
        verdicts += _of_context(before) if may_ask and (hit.context or asked) else ()
        may_serve = may_ask and before == context.Comparison() and rule.tightened == Tightened.NO
        may_ask = may_ask and not before.why and not (rule.is_strict and before.doubts)
        is_accepted = (is_clean and hit.similarity >= rule.accept_similarity) or place == winner
        is_served = served is None and may_serve and is_accepted
        served = hit if is_served else served
        if may_ask and not is_served:
            unsure.append(Doubt(hit, ((hit.question, text), *before.doubts)))
        candidates.append(
            Candidate(
                hit.entry_id, hit.question, hit.similarity, verdicts, is_served=is_served, sharing=hit.sharing
            )
        )
    reason = _reason(rule, served, unsure, candidates)
    return Judgement(served, reason, tuple(candidates), () if served else _affordable(unsure))


def _evidence(hit: Hit, text: str, *, is_refused: bool) -> tuple[Verdict, ...]:
    """The guard's verdicts, and those on what nobody compares by words."""
    verdicts = guard.verdicts(hit.question, text)
    if hit.sharing != "private":
        verdicts += (_length(hit.question, text),)
    return (*verdicts, REFUSED) if is_refused else verdicts


def _of_context(before: context.Comparison) -> tuple[Verdict, ...]:
    doubtful = "; ".join(f"{stored} / {asked}" for stored, asked in before.doubts)
    why = before.why or (doubtful and f"in other words: {doubtful}")
    return (Verdict("context", not why, why),)


def _affordable(unsure: Sequence[Doubt]) -> tuple[Doubt, ...]:
    """The nearest of them, as far as there is time to score their pairs."""
    counts = accumulate(len(doubt.pairs) for doubt in unsure)
    return tuple(doubt for doubt, count in zip(unsure, counts, strict=True) if count <= MAX_PAIRS)


def _length(stored: str, asked: str) -> Verdict:
    """What is shared is not reached by a question that hides another one in many more words."""
    is_alike = admission.is_length_alike(stored, asked)
    return Verdict("length", is_alike, "" if is_alike else f"{len(stored)} and {len(asked)} characters")


def voted(nearest: Sequence[tuple[str, float]]) -> int | None:
    """The place of the nearest question whose answer the others vote for; None where they are not of one mind.

    `nearest` are the questions' answers and similarities, best first.
    """
    if not nearest:
        return None
    weights: dict[str, float] = defaultdict(float)
    for answer, similarity in nearest:
        weights[answer] += exp((similarity - nearest[0][1]) / VOTE_WIDTH)
    first = max(weights, key=lambda answer: weights[answer])
    answers = [answer for answer, _ in nearest]
    is_listed = answers.count(first) >= NUM_AGREEING and len(first) >= MIN_AGREED_CHARS
    is_of_one_mind = weights[first] >= VOTED_FROM * sum(weights.values())
    return answers.index(first) if is_listed and is_of_one_mind else None


def second_opinion(judgement: Judgement, scores: Sequence[float]) -> Judgement:
    """Serve the unsure neighbour with the highest score, the nearer one of equals, if it is high enough. `scores` has
    one for each pair; of a neighbour's the lowest counts."""
    left = iter(scores)
    score_of = {doubt.hit.entry_id: min(next(left) for _ in doubt.pairs) for doubt in judgement.unsure}
    best = max((doubt.hit for doubt in judgement.unsure), key=lambda hit: score_of[hit.entry_id])
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


def _reason(
    rule: Rule, served: Hit | None, unsure: Sequence[Doubt], candidates: Sequence[Candidate]
) -> Reason:
    if served is not None:
        return Reason.SIMILAR
    if not candidates:
        return Reason.NO_NEIGHBOUR
    if unsure and rule.tightened and unsure[0].hit.similarity >= rule.accept_similarity:
        return Reason.TIGHTENED
    if unsure:
        return Reason.GREY_ZONE
    return Reason.GUARDED if candidates[0].similarity >= rule.verify_similarity else Reason.BELOW_THRESHOLD
