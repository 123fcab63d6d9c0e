"""`python -m tests.bench.engines.steps FOLDER [DTYPE ...]`: how long one forward of a model takes with small operations
in C++ and in plain torch, turn by turn in one process, and which part of it is what; one table per dtype.

The compiled operations are those of DATA_DIR (make models). Knows the engine's network; no scheduler and no sampling.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from inference.config import EngineConfig
from inference.models.attention import Group, RaggedBatch
from inference.models.fused.choice import kernels_for
from inference.models.fused.kernels import Kernels, PlainKernels
from inference.models.kv_tensors import KvShape, KvTensors
from inference.models.loader import LoadedModel, load_served

BATCHES = (1, 4, 8, 16, 32)
CONTEXTS = (128, 1000)
PROMPTS = (512, 1000)
NUM_STEPS = 9
BLOCK_TOKENS = 16
OPERATIONS = ("norm", "add_norm", "norm_heads", "gate", "place", "attend")


@dataclass(frozen=True)
class Step:
    """What one forward is asked: `num_rows` sequences with `num_before` tokens each read `num_new` more.

    The first `num_shared` of them are the same blocks in all.
    """

    num_rows: int
    num_before: int
    num_new: int = 1
    num_shared: int = 0

    def __str__(self) -> str:
        if self.num_new > 1:
            return f"prompt of {self.num_new}"
        shared = f", {self.num_shared} shared" if self.num_shared else ""
        return f"batch {self.num_rows} at {self.num_before}{shared}"


STEPS = (
    *(Step(batch, context) for context in CONTEXTS for batch in BATCHES),
    Step(16, 200, num_shared=144),
    *(Step(1, 0, num_prompt) for num_prompt in PROMPTS),
)


def arguments(step: Step, tensors: KvTensors) -> tuple[torch.Tensor, torch.Tensor, RaggedBatch, torch.Tensor]:
    """As a network takes them; every sequence has blocks of its own behind the shared ones."""
    length = step.num_before + step.num_new
    num_blocks, num_shared = -(-length // BLOCK_TOKENS), step.num_shared // BLOCK_TOKENS
    tables = np.arange(step.num_rows * num_blocks).reshape(step.num_rows, num_blocks)
    tables[:, :num_shared] = tables[0, :num_shared]
    rows = tensors.rows_of(tables)
    positions = np.arange(step.num_before, length)
    slots = rows[:, positions // BLOCK_TOKENS] * BLOCK_TOKENS + positions % BLOCK_TOKENS
    all_positions = torch.from_numpy(np.tile(positions, (step.num_rows, 1)))
    group = Group(0, step.num_rows, step.num_new, torch.from_numpy(rows), all_positions)
    batch = RaggedBatch(tensors, [group], torch.from_numpy(slots.reshape(-1)))
    ids = torch.arange(step.num_rows * step.num_new) * 7919 % 251
    last = torch.arange(step.num_rows) * step.num_new + step.num_new - 1
    return ids, all_positions.reshape(-1), batch, last


@contextmanager
def timed(kernels: Kernels, spent_s: dict[str, float]) -> Iterator[None]:
    """Adds up what the operations take inside."""

    def wrapped(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            began_s = time.perf_counter()
            result = operation(*given)
            spent_s[name] += time.perf_counter() - began_s
            return result

        return call

    for name in OPERATIONS:
        setattr(kernels, name, wrapped(name, getattr(kernels, name)))
    try:
        yield
    finally:
        for name in OPERATIONS:
            delattr(kernels, name)


@torch.inference_mode()
def measure(model: LoadedModel, forms: Sequence[Kernels], step: Step) -> str:
    """One line: the median of each form in ms, and where the last one's time goes."""
    shape = KvShape(model.num_layers, model.num_kv_heads, model.head_dim, BLOCK_TOKENS, model.dtype)
    num_blocks = step.num_rows * -(-(step.num_before + step.num_new) // BLOCK_TOKENS)
    tensors = KvTensors(shape, num_blocks, torch.device("cpu"))
    for block in range(num_blocks):
        tensors.block(block).normal_()
    given = arguments(step, tensors)
    network: Any = model.network
    times_s: dict[str, list[float]] = {form.name: [] for form in forms}
    for _ in range(NUM_STEPS if step.num_new == 1 else 3):
        for form in forms:
            network._kernels = form
            began_s = time.perf_counter()
            network(*given)
            times_s[form.name].append(time.perf_counter() - began_s)
    spent_s: dict[str, float] = defaultdict(float)
    with timed(forms[-1], spent_s):
        began_s = time.perf_counter()
        network(*given)
        whole_s = time.perf_counter() - began_s
    medians = [1000 * statistics.median(times) for times in times_s.values()]
    parts = [
        f"{name} {100 * part / whole_s:.0f}"
        for name, part in sorted(spent_s.items(), key=lambda one: -one[1])
    ]
    rest = 100 * (whole_s - sum(spent_s.values())) / whole_s
    cells = [str(step), *(f"{ms:.1f}" for ms in medians), f"{medians[0] / medians[-1]:.2f}"]
    cells.append(f"matrices and rest {rest:.0f}, {', '.join(parts)}")
    return f"| {' | '.join(cells)} |"


def main(folder: str, *dtypes: str) -> None:
    native = kernels_for("native", os.environ.get("DATA_DIR", EngineConfig().data_dir))
    for dtype in dtypes or ("bf16", "fp32"):
        model = load_served(Path(folder), dtype, "cpu")
        forms = [PlainKernels(), native(model.dtype, model.device)]
        print(
            f"\n{model.network.description}, {dtype}, {torch.get_num_threads()} threads; ms, and % of the last\n"
        )
        print(
            f"| step | {' | '.join(form.name for form in forms)} | ratio | where the time goes |\n|---|---|---|---|---|"
        )
        for step in STEPS:
            print(measure(model, forms, step), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
