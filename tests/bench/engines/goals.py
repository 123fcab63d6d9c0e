"""What is aimed at, and whether it was reached: one goal for each line of the table.

A goal compares a figure of ours with the best of its peers, or stands alone. It is reached only where every engine that
it names was measured, and on equal terms; where not, it says what is missing. Knows no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.engines.results import Results

OURS, OURS_INT8, OURS_W8A8, SITE, OWN = "ours-bf16", "ours-int8", "ours-w8a8", "ours-v1", "own"
ONE_BY_ONE, CONTINUOUS = "transformers-one", "transformers-continuous"
LLAMA, LLAMA_Q8, VLLM = "llamacpp-bf16", "llamacpp-q8", "vllm-bf16"
BETTER = (LLAMA, VLLM)


@dataclass(frozen=True, slots=True)
class Goal:
    """`floor` and `stretch` are shares of the best peer's figure, or of nothing where there are no peers. Times are the
    better the smaller."""

    workload: str
    figure: str
    text: str
    floor: float
    stretch: float
    peers: tuple[str, ...] = ()
    ours: str = OURS
    stretch_ours: str = ""  # where the stretch is for another of ours
    is_time: bool = False
    unit: str = "x"


@dataclass(frozen=True, slots=True)
class Verdict:
    goal: Goal
    value: float | None
    stretch_value: float | None
    best_peer: str
    missing: str

    @property
    def is_reached(self) -> bool:
        return not self.missing and self.value is not None and self._reaches(self.value, self.goal.floor)

    @property
    def is_stretched(self) -> bool:
        value = self.stretch_value
        return self.is_reached and value is not None and self._reaches(value, self.goal.stretch)

    def _reaches(self, value: float, aim: float) -> bool:
        return value <= aim if self.goal.is_time else value >= aim


RATE, TTFT = "tokens_per_s", "ttft_last_turn_ms"
GOALS = (
    Goal("a", RATE, "tok/s against one-by-one generate", 15, 20, (ONE_BY_ONE,)),
    Goal("a", RATE, "tok/s against transformers' continuous batching", 5, 8, (CONTINUOUS,)),
    Goal(
        "a",
        RATE,
        "tok/s against the faster of vLLM-CPU and llama.cpp",
        1.1,
        1.6,
        BETTER,
        stretch_ours=OURS_W8A8,
    ),
    Goal("b", RATE, "tok/s against the faster of the two", 1.3, 1.6, BETTER),
    Goal("b", TTFT, "TTFT of turn 6 against the better of the two", 0.5, 0.35, BETTER, is_time=True),
    Goal(
        "c",
        "decode_tokens_per_s",
        "decode tok/s against the fastest peer at any precision (ours int8)",
        1.0,
        1.3,
        (*BETTER, LLAMA_Q8),
        OURS_INT8,
    ),
    Goal(
        "c", "ttft_ms", "TTFT for 1,000 tokens against the better of the two", 1.1, 0.9, BETTER, is_time=True
    ),
    Goal("d", "ttft_p95_ms", "P95 TTFT against the better of the two", 0.9, 0.6, BETTER, is_time=True),
    Goal("d", "tpot_p95_ms", "P95 TPOT against the better of the two", 0.9, 0.6, BETTER, is_time=True),
    Goal("e", RATE, "tok/s against the faster of the two", 1.0, 1.3, BETTER),
    Goal(
        OWN,
        "batch_16_share",
        "decode at batch 16, share of the measured GEMM ceiling in bf16",
        0.55,
        0.7,
        ours=OWN,
        unit="%",
    ),
    Goal(
        OWN,
        "batch_1_share",
        "decode at batch 1 in bf16, share of the machine's ceiling",
        0.77,
        0.9,
        ours=OWN,
        unit="%",
    ),
    Goal(
        OWN,
        "neighbours_ratio",
        "decode at batch 8 with two busy neighbours on the two cores, step time against alone",
        1.5,
        1.1,
        ours=OWN,
        is_time=True,
    ),
    Goal("a", RATE, "tok/s through `/v1` against the engine's own door", 0.9, 0.97, (OURS,), SITE),
)


def verdict(goal: Goal, results: Results) -> Verdict:
    ours, peers = (
        _figure(results, goal, goal.ours),
        {name: _figure(results, goal, name) for name in goal.peers},
    )
    missing = [name for name, figure in {goal.ours: ours, **peers}.items() if figure is None]
    known = {name: figure for name, figure in peers.items() if figure is not None}
    best = (min if goal.is_time else max)(known, key=lambda name: known[name], default="")
    base = known[best] if best else 1.0
    stretched = _figure(results, goal, goal.stretch_ours) if goal.stretch_ours else ours
    return Verdict(
        goal,
        value=None if ours is None or (goal.peers and not best) else ours / base,
        stretch_value=None if stretched is None or (goal.peers and not best) else stretched / base,
        best_peer=best,
        missing=", ".join(_why(results, goal, name) for name in missing) or _unequal(results, goal),
    )


def verdicts(results: Results) -> Sequence[Verdict]:
    return [verdict(goal, results) for goal in GOALS]


def _figure(results: Results, goal: Goal, engine: str) -> float | None:
    return results.figure(engine, goal.workload, goal.figure)


def _why(results: Results, goal: Goal, engine: str) -> str:
    absence = results.of(engine).absence if engine in results.engines else ""
    return f"{engine} was not run" + (f" ({absence})" if absence else "")


def _unequal(results: Results, goal: Goal) -> str:
    """What makes a comparison no comparison: another machine, or another rate of arrivals."""
    names = (goal.ours, *goal.peers)
    machines = {results.of(name).abouts[goal.workload]["machine"] for name in names}
    rates = {results.figure(name, goal.workload, "per_s") for name in names}
    if len(machines) > 1:
        return "measured on different machines"
    return "measured at different rates of arrivals" if len(rates) > 1 else ""
