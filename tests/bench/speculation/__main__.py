"""`python -m tests.bench.speculation [--quick] [--model FOLDER]`: what speculation gains and costs, by what is asked.

The real small model in this process, without doors: the same answers with every setting, one setting after the other
in each round, so that a neighbour slows all of them down. Only steps in which everybody decodes are measured. Writes
the table of docs/engine/speculation.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import torch

from inference import settings
from inference.config import EngineConfig
from inference.core.loop import CoreLoop
from inference.core.messages import Admit, SamplingSpec
from inference.core.startup import assemble
from inference.front.model_folder import read_model_folder
from inference.models.fused.choice import kernels_for
from inference.models.loader import LoadedModel, load_served
from inference.models.precision import dtype_name
from inference.types import Segment
from tests.bench import host
from tests.bench.pages import put_table
from tests.bench.speculation.tasks import FREE, GROUNDED
from tests.livesite import PROJECT

PAGE = PROJECT / "docs" / "engine" / "speculation.md"
MODEL = PROJECT / "data" / "models" / "SmolLM2-135M-Instruct"
MODES = ("off", "auto", "always")
BATCHES = (1, 2)
# At 1.0 the small model says little twice: what drafts cost where they are never right.
GREEDY = SamplingSpec()
SAMPLED = SamplingSpec(temperature=1.0, seed=11)


@dataclass(frozen=True, slots=True)
class Plan:
    """`clock` in seconds."""

    num_rounds: int
    num_tokens: int
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked, in batches of so many at once, and how the answers are sampled. `stop_ids` end them."""

    name: str
    prompts: Sequence[Sequence[int]]
    stop_ids: Sequence[int]
    sampling: SamplingSpec


@dataclass(slots=True)
class Measured:
    """All batches of a task, one after the other, with one setting."""

    num_tokens: int = 0
    seconds: float = 0.0
    drafted: int = 0
    accepted: int = 0
    answers: list[list[int]] = field(default_factory=list)

    @property
    def tokens_per_s(self) -> float:
        return self.num_tokens / self.seconds


def tasks(folder: Path) -> list[Task]:
    served = read_model_folder(folder, None)

    def task(name: str, questions: Sequence[str], sampling: SamplingSpec) -> Task:
        prompts = [served.prompts.build([Segment("user", question)]).ids for question in questions]
        return Task(name, prompts, sorted(served.stop_ids), sampling)

    return [
        *(task(name, questions, GREEDY) for name, questions in GROUNDED.items()),
        task("free, greedy", FREE, GREEDY),
        task("free, temperature 1", FREE, SAMPLED),
    ]


def measure(loop: CoreLoop, task: Task, batch: int, plan: Plan) -> Measured:
    """Answers to all prompts. What a round before has left in KV is not computed again."""
    measured, before = Measured(), loop.stats()
    for start in range(0, len(task.prompts), batch):
        requests = [
            Admit(str(n), list(prompt), task.sampling, plan.num_tokens, list(task.stop_ids), b"", b"")
            for n, prompt in enumerate(task.prompts[start : start + batch])
        ]
        measured.answers += decode(loop, requests, measured, plan.clock)
    stats = loop.stats()
    measured.drafted = stats.drafted_tokens - before.drafted_tokens
    measured.accepted = stats.accepted_tokens - before.accepted_tokens
    return measured


def decode(
    loop: CoreLoop, requests: Sequence[Admit], measured: Measured, clock: Callable[[], float]
) -> list[list[int]]:
    """The answers; measured are the steps after everybody's first token."""
    answers: dict[str, list[int]] = {request.id: [] for request in requests}
    started, num_before = 0.0, 0
    packs = list(loop.step(requests))
    while True:
        for out in (out for pack in packs for out in pack.tokens):
            answers[out.id].append(out.token)
        if not loop.has_work:
            break
        if not started and all(answers.values()):
            started, num_before = clock(), sum(map(len, answers.values()))
        packs = list(loop.step())
    measured.seconds += clock() - started
    measured.num_tokens += sum(map(len, answers.values())) - num_before
    return list(answers.values())


def rounds(model: LoadedModel, task: Task, batch: int, plan: Plan) -> dict[str, list[Measured]]:
    """So many runs with each setting, each round from another setting on."""
    loops = {mode: assemble(EngineConfig(kv_memory_mb=256, speculate=mode), model).loop for mode in MODES}
    found: dict[str, list[Measured]] = {mode: [] for mode in MODES}
    for number in range(plan.num_rounds):
        turn = number % len(MODES)
        for mode in (*MODES[turn:], *MODES[:turn]):
            found[mode].append(measure(loops[mode], task, batch, plan))
    return found


def row(task: Task, batch: int, found: dict[str, list[Measured]]) -> str:
    """A line of the table: tokens a second without, what becomes of it, and what share of the guesses was right."""
    plain = found["off"]
    cells = [f"{median(one.tokens_per_s for one in plain):.0f}"]
    for mode in MODES[1:]:
        pairs = zip(found[mode], plain, strict=True)
        gain = median(ours.tokens_per_s / theirs.tokens_per_s for ours, theirs in pairs)
        one = found[mode][0]
        right = f"{one.accepted / one.drafted:.0%} of {one.drafted}" if one.drafted else "none"
        cells += [f"{gain:.2f}x", right]
    return f"| {task.name} | {batch} | {' | '.join(cells)} |"


def num_others(ones: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> int:
    return sum(one != other for one, other in zip(ones, others, strict=True))


HEAD = """| asked for | batch | tok/s, off | auto | guesses right | always | guesses right |
|---|---|---|---|---|---|---|"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.speculation")
    parser.add_argument("--quick", action="store_true", help="one round of short answers; writes nothing")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args(argv)
    # What neighbours take of the processor is not in the time of a thread.
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    plan = Plan(1, 8, clock) if options.quick else Plan(3, 40, clock)
    torch.set_num_threads(options.threads)
    config = settings.read(EngineConfig)
    kernels = kernels_for(config.kernels, config.data_dir)
    model = load_served(options.model, config.dtype, "cpu", config.layers, config.weights, kernels)
    about = (
        f"{host.processor()}, threads: {options.threads}; {options.model.name} in {dtype_name(model.dtype)}, "
        f"{model.network.description}; {plan.num_tokens} tokens at most, medians of {plan.num_rounds} rounds."
    )
    print(about, HEAD, sep="\n", flush=True)
    lines, answers = [], dict[tuple[str, int], list[list[int]]]()
    for task in tasks(options.model):
        for batch in BATCHES:
            found = rounds(model, task, batch, plan)
            lines.append(row(task, batch, found))
            print(lines[-1], flush=True)
            for mode in MODES:
                answers.setdefault((mode, batch), []).extend(found[mode][0].answers)
    alone, company = BATCHES
    ties = (
        f"Of {len(answers['off', alone])} answers alone {num_others(answers['auto', alone], answers['off', alone])} "
        f"differ from those without speculation (`always`: "
        f"{num_others(answers['always', alone], answers['off', alone])}), where two tokens tie within rounding; by "
        f"company alone {num_others(answers['off', company], answers['off', alone])} do."
    )
    print(ties)
    if not options.quick:
        put_table(PAGE, "make bench-speculation", "\n".join([about, "", HEAD, *lines, "", ties]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
