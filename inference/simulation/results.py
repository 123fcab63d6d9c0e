"""What a run says: percentiles by class of user, and whether every promise was kept.

Knows measurements and bounds; neither how they came about nor how they are printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from inference.core.fairness import GENERATED_WEIGHT, PROMPT_WEIGHT
from inference.core.limits import Limits
from inference.core.pacing import PREFILL_SHARE
from inference.core.scheduler import OFFLINE_PATIENCE_LEVELS
from inference.simulation.engine import Answer, Run
from inference.simulation.load import FLOODER
from inference.simulation.service import bound

CLASSES = ("polite", FLOODER, "offline")
# A step may take so much longer than asked for (99 of 100 do not): its length is a forecast, and its noise is 5 %.
PACING_FACTOR = 1.25


@dataclass(frozen=True, slots=True)
class Percentiles:
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class ClassResult:
    """What the users of one class saw, in seconds."""

    name: str
    num_requests: int
    ttft_s: Percentiles
    tpot_s: Percentiles


@dataclass(frozen=True, slots=True)
class Promise:
    """`value` must not exceed `at_most`."""

    name: str
    value: float
    at_most: float

    @property
    def is_kept(self) -> bool:
        return self.value <= self.at_most


@dataclass(frozen=True, slots=True)
class Result:
    """One run, ready to be shown."""

    policy: str
    has_fair_shares: bool
    simulated_s: float
    num_steps: int
    num_preemptions: int
    prefilled_tokens: int
    reused_tokens: int
    step_s: Percentiles  # of steps in which an interactive stream decodes
    classes: list[ClassResult]
    promises: list[Promise]


def result_of(run: Run, limits: Limits) -> Result:
    step_seconds = [seconds for seconds, _ in run.stream_steps]
    return Result(
        policy=limits.policy,
        has_fair_shares=limits.fair_shares,
        simulated_s=run.ended_at,
        num_steps=run.num_steps,
        num_preemptions=run.num_preemptions,
        prefilled_tokens=run.prefilled_tokens,
        reused_tokens=run.reused_tokens,
        step_s=percentiles(step_seconds),
        classes=[_class_result(name, run.answers) for name in CLASSES],
        promises=[
            _pacing(run, limits),
            *([_fairness(run, limits), _interactive_wait(run, limits)] if limits.fair_shares else []),
            _offline_wait(run, limits),
        ],
    )


def class_of(answer: Answer) -> str:
    if answer.arrival.admit.is_offline:
        return "offline"
    return FLOODER if answer.arrival.user == FLOODER else "polite"


def percentiles(values: Iterable[float]) -> Percentiles:
    found = np.percentile([*values] or [0.0], [50, 95, 99])
    return Percentiles(*map(float, found))


def _class_result(name: str, answers: list[Answer]) -> ClassResult:
    own = [answer for answer in answers if class_of(answer) == name]
    ttft = percentiles(answer.ttft_s for answer in own)
    return ClassResult(name, len(own), ttft, percentiles(answer.tpot_s for answer in own))


def _pacing(run: Run, limits: Limits) -> Promise:
    """Steps with streams: seconds per second of what is asked for, the target or a third more than without prefill."""
    ratios = [s / max(limits.target_tpot_s, bare * (1 + PREFILL_SHARE)) for s, bare in run.stream_steps]
    return Promise("step time / target, p99", percentiles(ratios).p99, PACING_FACTOR)


def _fairness(run: Run, limits: Limits) -> Promise:
    return Promise("service gap, weighted tokens", run.service_gap, _gap_bound(run, limits))


def _interactive_wait(run: Run, limits: Limits) -> Promise:
    """Waits as parts of what equal shares allow.

    While a request waits, its user gets the service of their own requests that wait with it, and no other user more
    than that and the gap. So the engine does at most that for each of the users meanwhile.
    """
    interactive = [answer for answer in run.answers if class_of(answer) != "offline"]
    by_user: dict[str, list[Answer]] = {}
    for answer in interactive:
        by_user.setdefault(answer.arrival.user, []).append(answer)
    per_s = sum(map(_cost, run.answers)) / run.ended_at
    gap = _gap_bound(run, limits)
    worst = 0.0
    for answers in by_user.values():
        for answer in answers:
            own = sum(_cost(other) for other in answers if _overlap(answer, other))
            worst = max(worst, answer.ttft_s * per_s / (len(by_user) * (own + gap)))
    return Promise("longest interactive wait / what equal shares allow", worst, 1.0)


def _offline_wait(run: Run, limits: Limits) -> Promise:
    """While offline work waits one of it starts or ends at least so often.

    The next one is promoted after its patience and after the end of the one before, and keeps the seat it gets then.
    """
    offline = [answer for answer in run.answers if class_of(answer) == "offline"]
    events = sorted(at for answer in offline for at in (answer.token_times[0], answer.ended_at))
    first = min((answer.arrival.at_s for answer in offline), default=0.0)
    longest = max((later - earlier for earlier, later in pairwise([first, *events])), default=0.0)
    patience_s = OFFLINE_PATIENCE_LEVELS * limits.ageing_s
    longest_run_s = max(answer.run_s for answer in run.answers)
    return Promise("longest pause of offline work, s", longest, patience_s + 2 * longest_run_s)


def _gap_bound(run: Run, limits: Limits) -> float:
    admits = [answer.arrival.admit for answer in run.answers]
    longest_prompt = max(len(admit.prompt_ids) for admit in admits)
    return bound(limits, longest_prompt, max(admit.max_tokens for admit in admits))


def _cost(answer: Answer) -> float:
    """As if nothing were reused."""
    admit = answer.arrival.admit
    return PROMPT_WEIGHT * len(admit.prompt_ids) + GENERATED_WEIGHT * len(answer.token_ids)


def _overlap(answer: Answer, other: Answer) -> bool:
    """Whether `other` was here while `answer` waited."""
    return other.arrival.at_s <= answer.token_times[0] and other.ended_at >= answer.arrival.at_s
