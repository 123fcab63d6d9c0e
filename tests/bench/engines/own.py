"""How near our engine's decode comes to what the machine can do, and what busy neighbours do to it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.bench.engines.answers import steady_tokens_per_s
from tests.bench.engines.workloads import Figures, Round

BATCHES = (1, 16)
BESIDE_BATCH, NUM_NEIGHBOURS = 8, 2
BUSY = "while True: pass"


def ceilings(model: Path) -> dict[int, float]:
    """Tokens a second by batch, measured in a process of its own: nothing else may run meanwhile."""
    argv = [sys.executable, "-m", "tests.bench.engines.ceiling", str(model), *map(str, BATCHES)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return {int(batch): float(rate) for batch, rate in json.loads(done.stdout).items()}


async def own(asked: Round, most: Mapping[int, float], nice: int) -> Figures:
    """`nice`: how much lower than the engine's core the neighbours are, as the site's own processes are. What equals of
    the core do to it is measured beside."""
    figures: Figures = {}
    for batch in BATCHES:
        rate = await _decode(asked, batch)
        figures |= {
            f"batch_{batch}_tokens_per_s": rate,
            f"ceiling_{batch}_tokens_per_s": most[batch],
            f"batch_{batch}_share": rate / most[batch],
        }
    alone = 1000 * BESIDE_BATCH / await _decode(asked, BESIDE_BATCH)
    figures["alone_step_ms"] = alone
    for name, steps in (("neighbours", nice), ("equal_neighbours", 0)):
        with _neighbours(steps):
            beside = 1000 * BESIDE_BATCH / await _decode(asked, BESIDE_BATCH)
        figures |= {f"{name}_step_ms": beside, f"{name}_ratio": beside / alone}
    return figures


async def _decode(asked: Round, batch: int) -> float:
    num_prompt, num_new = asked.sizes.decode
    chance = asked.chance(f"own {batch}")
    asks = [asked.writer.ask(asked.writer.plain(num_prompt, chance), num_new) for _ in range(batch)]
    return steady_tokens_per_s(await asyncio.gather(*map(asked.door.answer, asks)))


@contextmanager
def _neighbours(nice: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(NUM_NEIGHBOURS)]
    try:
        for process in busy:
            os.setpriority(os.PRIO_PROCESS, process.pid, nice)
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
