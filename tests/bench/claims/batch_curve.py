"""Claim: throughput rises 3 to 8 times with the batch.

Decode steps only, so that the curve shows the batch and nothing else.
"""

from __future__ import annotations

from tests.bench.claims.findings import Finding, Lines, Row
from tests.bench.claims.rig import Rig, ask, median

MIN_GAIN = 3.0


def measure(rig: Rig) -> Finding:
    batches = rig.size((1, 2, 4, 8, 16, 32), (1, 2, 4))
    num_prompt, num_new = rig.size((128, 40), (16, 8))
    rates = [median(_rate(rig, size, num_prompt, num_new) for _ in range(rig.rounds)) for size in batches]
    curve = tuple(zip(batches, rates, strict=True))
    gain = max(rates) / rates[0]
    return Finding(
        rows=(
            Row(
                "batching raises throughput 3-8 times",
                "none",
                f"{gain:.1f} times; tokens/s at a batch of "
                + ", ".join(f"{size}: {rate:.0f}" for size, rate in curve),
                f"decode steps at {num_prompt}-{num_prompt + num_new} tokens of context, median step",
                gain >= MIN_GAIN,
            ),
        ),
        pictures={
            "batch-curve": Lines(
                "Decode throughput by batch size",
                "requests at once",
                "tokens/s",
                (("ours", curve),),
                is_log_x=True,
            )
        },
    )


def _rate(rig: Rig, size: int, num_prompt: int, num_new: int) -> float:
    player = rig.player(max_batch=size)
    player.run(*(ask(rig.ids(num_prompt, seed), num_new) for seed in range(size)))
    # Only steps in which every request made a token and none read its prompt: not the first such step.
    full = [step.seconds for step in player.steps if step.num_tokens == size][1:]
    return size / median(full)
