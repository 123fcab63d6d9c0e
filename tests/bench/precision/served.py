"""What the engine does in a precision: started as people start it, asked through its own door.

Knows the measures and how long to take them. The loads are those of the bench of engines.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.engines.answers import Answer, steady_tokens_per_s
from tests.bench.engines.asks import Writer
from tests.bench.engines.doors import Door
from tests.bench.engines.ours import Ours
from tests.bench.engines.peers import Place
from tests.bench.engines.processes import memory_mib

BATCHES = (1, 16)
# Small, so that what else takes memory shows.
KV_MIB = 128
SLACK_MIB, SLACK = 300, 1.3


@dataclass(frozen=True, slots=True)
class Sizes:
    """In tokens. Quick sizes show that a measurement works, and little else."""

    rounds: int = 3
    decode: tuple[int, int] = (96, 64)  # prompt, answer
    prefill: int = 512
    answers: int = 16
    prompts: int = 100


QUICK = Sizes(rounds=1, decode=(16, 8), prefill=64, answers=4, prompts=4)


@dataclass(frozen=True, slots=True)
class Served:
    """Rates in tokens a second; memory is that of front and core together."""

    decode_1: float
    decode_16: float
    prefill: float
    memory_mib: float
    cold_start_s: float


def memory_limit_mib(weight_bytes: int) -> float:
    """How large front and core may be: weights, the configured pool and what two processes need, and a bit."""
    return SLACK * (weight_bytes / 2**20 + KV_MIB + SLACK_MIB)


def served(folder: Path, dtype: str, weights: str, sizes: Sizes) -> Served:
    """The first start reads files into memory and is not measured. Raises NotStarted."""
    variables = {"ENGINE_WEIGHTS": weights, "ENGINE_KV_MEMORY_MB": str(KV_MIB), "ENGINE_SPECULATE": "off"}
    ours = Ours(dtype, variables)
    with tempfile.TemporaryDirectory(prefix="rill-precision-") as scratch:
        place = Place(folder, Path(scratch), Path(scratch))
        with ours.open(place):
            pass
        with ours.open(place) as opened:
            rates = asyncio.run(_rates(opened.door, Writer(folder), sizes))
            return Served(*rates, memory_mib(opened.child.pid), opened.child.cold_start_s)


async def _rates(door: Door, writer: Writer, sizes: Sizes) -> list[float]:
    """Medians of the rounds: decode by batch, then prefill."""
    chance = random.Random("precision")
    num_prompt, num_new = sizes.decode
    rounds = []
    try:
        await _answers(door, writer, [num_prompt], num_new, chance)
        for _ in range(sizes.rounds):
            decode = [
                steady_tokens_per_s(await _answers(door, writer, [num_prompt] * batch, num_new, chance))
                for batch in BATCHES
            ]
            [read] = await _answers(door, writer, [sizes.prefill], num_new, chance)
            rounds.append([*decode, sizes.prefill / read.ttft_s])
    finally:
        await door.close()
    return [statistics.median(values) for values in zip(*rounds, strict=True)]


async def _answers(
    door: Door, writer: Writer, prompts: Sequence[int], num_new: int, chance: random.Random
) -> list[Answer]:
    asks = [writer.ask(writer.plain(num, chance), num_new) for num in prompts]
    return await asyncio.gather(*map(door.answer, asks))
