"""Thresholds that keep a rule within its limit of wrong answers and serve the most, told by what was checked.

Pure. Only what was served was checked, so nothing is proposed a step below the least alike that was. Of a random sample
the upper end of the wrong share's 95 % interval (Wilson) must be within the limit; what people reported is no sample
and is held against all hits. A threshold that is picked from many by the same checks looks a little better than it is:
the rule's budget goes on watching it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor

from semcache.evaluation.metrics import wilson

STEP = 0.005
SCORE_STEP = 0.02


@dataclass(frozen=True, slots=True)
class Checked:
    """One served answer that somebody judged; `score` is the verifier's where it was asked. Without `is_sample` it is a
    report, which is always of a wrong one."""

    similarity: float
    score: float | None
    is_wrong: bool
    is_sample: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """The nearest neighbour of one look-up by meaning to which the guard did not object."""

    similarity: float
    score: float | None


@dataclass(frozen=True, slots=True)
class Zone:
    """What is known at one threshold: of the sample, and of the hits that the log would have had there."""

    similarity: float
    score: float | None
    num: int
    num_wrong: int
    low: float
    high: float
    num_reported: int
    num_hits: int

    def is_within(self, limit: float) -> bool:
        return self.high <= limit and self.num_reported <= limit * self.num_hits


@dataclass(frozen=True, slots=True)
class Proposal:
    """One of a rule's two zones: as it stands, and what it should be; `proposed` is None for the reason given."""

    now: Zone
    proposed: Zone | None
    reason: str

    @property
    def is_change(self) -> bool:
        return self.proposed is not None and (self.proposed.similarity, self.proposed.score) != (
            self.now.similarity,
            self.now.score,
        )


def num_needed(limit: float) -> int:
    """How many checks, all right, the interval takes to be within the limit; 0 where none can."""
    return next((num for num in range(1, 1_000_000) if wilson(0, num)[1] <= limit), 0) if limit > 0 else 0


def accepted(checked: Sequence[Checked], seen: Sequence[Seen], now: float, limit: float) -> Proposal:
    """The similarity from which a neighbour is served without a second opinion."""
    alone = [one for one in checked if one.score is None]
    tried = {similarity: _zone(alone, seen, similarity) for similarity in (now, *_steps(alone))}
    return _best(tried[now], list(tried.values()), limit)


def verified(
    checked: Sequence[Checked], seen: Sequence[Seen], now: tuple[float, float], accept: float, limit: float
) -> Proposal:
    """The similarity below `accept` from which the verifier is asked, and the score from which its yes counts."""
    asked = [one for one in checked if one.score is not None]
    between = [one for one in seen if one.score is not None and one.similarity < accept]
    scores = {floor((one.score or 0.0) / SCORE_STEP + 1e-9) * SCORE_STEP for one in asked}
    places = [(similarity, round(score, 6)) for similarity in _steps(asked) for score in sorted(scores)]
    tried = {
        place: _zone(asked, between, *place) for place in dict.fromkeys((now, *places)) if place[0] <= accept
    }
    return _best(tried[now], list(tried.values()), limit)


def _best(now: Zone, tried: Sequence[Zone], limit: float) -> Proposal:
    if max(zone.num for zone in tried) < max(1, num_needed(limit)):
        return Proposal(now, None, "too little evidence")
    within = [zone for zone in tried if zone.is_within(limit)]
    if not within:
        return Proposal(now, None, "no threshold is within the limit")
    # Of those that serve as many the strictest, which costs nothing; the one in force before all others.
    best = max(within, key=lambda zone: (zone.num_hits, zone == now, zone.similarity, zone.score or 0.0))
    return Proposal(now, best, "")


def _zone(
    checked: Iterable[Checked], seen: Iterable[Seen], similarity: float, score: float | None = None
) -> Zone:
    def is_served(one: Checked | Seen) -> bool:
        return one.similarity >= similarity and (score is None or (one.score or 0.0) >= score)

    served = [one for one in checked if is_served(one)]
    sample = [one.is_wrong for one in served if one.is_sample]
    low, high = wilson(sum(sample), len(sample))
    return Zone(
        similarity=similarity,
        score=score,
        num=len(sample),
        num_wrong=sum(sample),
        low=low,
        high=high,
        num_reported=len(served) - len(sample),
        num_hits=sum(map(is_served, seen)),
    )


def _steps(checked: Sequence[Checked]) -> list[float]:
    """From the least alike that was checked up to 1."""
    first = floor(min((one.similarity for one in checked), default=2.0) / STEP + 1e-9)
    return [round(number * STEP, 6) for number in range(first, round(1 / STEP) + 1)]
