"""`python -m tests.bench.preload [--quick] [--model FOLDER]`: how long people wait for the first token where their
conversation was read ahead, and what that costs the others. The real small model, asked through the site; writes
docs/preloading.md's table.

Knows the order of things and the site that is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import httpx2

from inference.client import EngineClient
from inference.types import EngineStats
from tests.bench import host
from tests.bench.preload import report
from tests.bench.preload.crowd import ANSWER_TOKENS, Crowd
from tests.bench.preload.report import Cell
from tests.bench.preload.texts import conversation, file_of, words
from tests.bench.preload.visits import Ahead, Visit, Wait, visit
from tests.bench.web.clients import Door
from tests.e2e.people import signed_in
from tests.livesite import PROJECT, LiveSite, live_site
from tests.plugins.servers import Servers

PAGE = PROJECT / "docs" / "preloading.md"
FIGURES = PROJECT / "docs" / "preloading.json"
MODEL = PROJECT / "data" / "models" / "SmolLM2-135M-Instruct"
NUM_OTHERS = 12
LEAVES_EVERY = 5  # every fifth visitor goes without a question: what was read for them is wasted
SEED = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """Visits of each kind at each load, one after the other, `stays_s` each before the question, one every `every_s`
    where the one before has ended. The first load is none: it tells what a visit costs."""

    loads: Sequence[float]
    num_visits: int
    history_tokens: int
    question_tokens: int
    stays_s: float
    every_s: float
    calibration_s: float


# What was read ahead for who left without a question is counted when the engine has come to rest.
REST_S = 0.5
FULL = Plan((0.0, 0.5, 0.9), 10, 1500, 120, 4.0, 12.0, 12.0)
QUICK = Plan((0.0, 0.5), 1, 100, 20, 0.3, 0.8, 0.5)


@dataclass(slots=True)
class _Tally:
    """What came of the visits of one cell."""

    waits: list[Wait] = field(default_factory=list)
    spans_s: list[tuple[float, float]] = field(default_factory=list)
    warmed: int = 0
    used: int = 0


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if not options.model.is_dir():
        print(f"there is no model at {options.model}: make models", file=sys.stderr)
        return 1
    plan = QUICK if options.quick else FULL
    machine = f"{host.processor()}, commit {host.commit()}, load before {os.getloadavg()[0]:.1f}"
    print(machine + ("\n" if host.is_quiet() else "\nWARNING: this machine is not quiet\n"), flush=True)
    with _site(options.model) as site:
        cells = asyncio.run(_Bench(site, plan).measure())
    print(report.table(cells, machine))
    if not options.quick:
        report.write(cells, machine, options.page, options.json)
    return 0


class _Bench:
    def __init__(self, site: LiveSite, plan: Plan) -> None:
        self._plan = plan
        self._chance = random.Random(SEED)
        self._visit_s = 0.0
        cookies = signed_in(site, NUM_OTHERS + 1)
        visitor, *others = (Door(site.url, cookies=f"sessionid={cookie}") for cookie in cookies)
        self._visitor = Door(site.url, site.key("Ada", "chat"), visitor.cookies)
        keys = [site.key(f"other-{number}", "chat") for number in range(len(others))]
        self._others = [Door(site.url, key) for key in keys]
        listed = httpx2.get(f"{site.url}/v1/models", headers={"Authorization": f"Bearer {keys[0]}"})
        self._model = listed.raise_for_status().json()["data"][0]["id"]
        self._engine_address = site.environ["ENGINE_ADDRESS"]

    async def measure(self) -> list[Cell]:
        async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=200)) as client:
            self._client = client
            self._engine = EngineClient(self._engine_address, "")
            try:
                most = await Crowd(self._others, self._chance, self._model).most_per_s(
                    client, self._plan.calibration_s
                )
                print(f"the site makes {most:.1f} short answers a second at most", flush=True)
                cells = []
                for load in self._plan.loads:
                    cells += await self._at_load(load, self._crowds_share(load) * most)
                return cells
            finally:
                await self._engine.close()

    def _crowds_share(self, load: float) -> float:
        """What is left for the others of a load that the visits are a part of: else a load of 90 % would be more than
        the site can do, and its queue would only grow."""
        return max(0.0, load - self._visit_s / self._plan.every_s)

    async def _at_load(self, load: float, per_s: float) -> list[Cell]:
        """The three ways take turns, so that whatever changes meanwhile changes for all."""
        crowd = Crowd(self._others, self._chance, self._model)
        asking = asyncio.create_task(crowd.ask_for_ever(self._client, per_s)) if per_s else None
        tallies = {ahead: _Tally() for ahead in Ahead}
        try:
            for number in range(self._plan.num_visits):
                asks = self._plan.num_visits < LEAVES_EVERY or (number + 1) % LEAVES_EVERY != 0
                for ahead, tally in tallies.items():
                    await self._visit(ahead, tally, asks=asks)
        finally:
            if asking is not None:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
        if not per_s:
            self._visit_s = fmean(wait.took_s for wait in tallies[Ahead.OFF].waits)
        cells = [_cell(ahead, load, tally, crowd.ttfts_s(tally.spans_s)) for ahead, tally in tallies.items()]
        for cell in cells:
            print(f"load {load:.0%}, {cell.ahead}: first token p50 {cell.ttft_ms(0.5):.0f} ms", flush=True)
        return cells

    async def _visit(self, ahead: Ahead, tally: _Tally, *, asks: bool) -> None:
        one = Visit(
            await self._new_conversation(),
            words(self._plan.question_tokens, self._chance),
            ahead,
            self._plan.stays_s,
            asks,
        )
        before, began_at = await self._engine.stats(), time.monotonic()
        wait = await visit(self._visitor, one)
        await asyncio.sleep(max(REST_S, began_at + self._plan.every_s - time.monotonic()))
        after = await self._engine.stats()
        tally.waits += [wait] if wait is not None else []
        tally.spans_s.append((began_at, time.monotonic()))
        tally.warmed += _more(before, after, "warmed_tokens")
        tally.used += _more(before, after, "warmed_used_tokens")

    async def _new_conversation(self) -> str:
        history = file_of([conversation(self._plan.history_tokens, self._chance)])
        headers = {"Authorization": f"Bearer {self._visitor.key}"}
        url = f"{self._visitor.url}/api/conversations/import"
        answer = await self._client.post(url, json=history, headers=headers)
        answer.raise_for_status()
        return str(answer.json()["conversations"][0])


def _more(before: EngineStats, after: EngineStats, name: str) -> int:
    return int(getattr(after, name) - getattr(before, name))


def _cell(ahead: Ahead, load: float, tally: _Tally, others_s: Sequence[float]) -> Cell:
    return Cell(
        ahead.value,
        load,
        [wait.ttft_s for wait in tally.waits],
        others_s,
        sum(wait.prompt_tokens for wait in tally.waits),
        sum(wait.reused_tokens for wait in tally.waits),
        tally.warmed,
        tally.used,
    )


@contextmanager
def _site(model: Path) -> Iterator[LiveSite]:
    with tempfile.TemporaryDirectory(prefix="rill-bench-") as folder:
        servers = Servers(Path(folder))
        try:
            os.environ.update(servers.addresses())
            # Of a visitor's answer only the first token counts, and the small model finds no end.
            most = ("--max-output-tokens", str(ANSWER_TOKENS))
            engine = ("inference", "--model", str(model), "--embed-model", "", *most)
            settings = {
                "SECRET_KEY": secrets.token_urlsafe(48),
                "SEMCACHE_ENABLED": "off",
                "CHAT_MAX_LIVE_PER_USER": "100",
                "CHAT_LOG_LEVEL": "WARNING",
                "ENGINE_STEP_TIMEOUT_S": "600",  # a busy machine is slow, not hung
            }
            with live_site("preload_bench", engine, **settings) as site:
                yield site
        finally:
            servers.stop()


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.preload", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="small numbers, and nothing is written")
    parser.add_argument("--model", type=Path, default=MODEL, help="a folder; the trial model")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that gets the table")
    parser.add_argument("--json", type=Path, default=FIGURES, help="the file that gets all times")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
