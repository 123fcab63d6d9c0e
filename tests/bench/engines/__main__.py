"""`make bench`: every engine as a server, asked the same over streaming HTTP; writes docs/engine/benchmarks.md.

Knows the order of things: one engine at a time, alone on the machine. What is not measured in this run keeps what an
earlier one found, so that it can be run in parts:

    make bench ARGS="--peer llamacpp --workload a"
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference import settings
from inference.config import EngineConfig
from inference.models.resolve import resolve
from tests.bench import host
from tests.bench.engines import report, results
from tests.bench.engines.answers import AnswerBroken
from tests.bench.engines.asks import Writer
from tests.bench.engines.every import CAPACITIES, ENGINES, Entry
from tests.bench.engines.goals import OURS, OWN, verdicts
from tests.bench.engines.ours import NICE
from tests.bench.engines.own import ceilings, own
from tests.bench.engines.peers import Opened, Place
from tests.bench.engines.processes import NotStarted, memory_mib
from tests.bench.engines.results import Results
from tests.bench.engines.workloads import FULL, QUICK, SHARE_OF_CAPACITY, WORKLOADS, Figures, Round, warm_up
from tests.livesite import PROJECT

PAGE = PROJECT / "docs" / "engine" / "benchmarks.md"
FIGURES = PROJECT / "docs" / "engine" / "benchmarks.json"
PICTURES = PROJECT / "docs" / "pictures"
CAPACITY, OPEN_LOOP = "capacity", "d"
CHOICES = (*WORKLOADS, OWN)


@dataclass(frozen=True, slots=True)
class Run:
    """What is the same for all workloads of one start of an engine; `most` are the ceilings of its decode."""

    about: Mapping[str, str]
    most: Mapping[int, float]


@dataclass(slots=True)
class Bench:
    """One run over one model."""

    place: Place
    writer: Writer
    options: argparse.Namespace
    known: Results
    engines: Mapping[str, Entry]

    def measure(self) -> None:
        """All but the open loop first: its rate comes from what the peers can take."""
        chosen = [name for name, entry in self.engines.items() if entry.engine.peer in self.options.peer]
        for name in chosen:
            self._open(name, self._wanted(name))
        if OPEN_LOOP in self.options.workload:
            for name in chosen:
                self._open(name, [OPEN_LOOP] if OPEN_LOOP in self.engines[name].workloads else [])

    def _wanted(self, name: str) -> list[str]:
        """What is asked of an engine in the first pass."""
        wanted = set(self.options.workload) & set(self.engines[name].workloads) - {OPEN_LOOP}
        if name in CAPACITIES and self._needs_capacity(name):
            wanted.add(CAPACITY)
        if OWN in self.options.workload and name == OURS:
            wanted.add(OWN)
        return [workload for workload in (*WORKLOADS, OWN) if workload in wanted]

    def _needs_capacity(self, name: str) -> bool:
        """Measured anew only when asked for: another capacity is another rate, at which no earlier figure was taken."""
        if CAPACITY in self.options.workload:
            return True
        return (
            OPEN_LOOP in self.options.workload and self.known.figure(name, CAPACITY, "requests_per_s") is None
        )

    def _open(self, name: str, workloads: Sequence[str]) -> None:
        if not workloads:
            return
        most = ceilings(self.place.model) if OWN in workloads else {}
        about = {
            "machine": f"{host.processor()} with {host.vector_units() or 'unknown vector units'}",
            "commit": host.commit(),
            "load before": f"{os.getloadavg()[0]:.1f}",
            "rounds": str(self.options.rounds),
        }
        measured = self.known.of(name)
        try:
            with self.engines[name].engine.open(self.place) as opened:
                measured.absence, measured.cold_start_s = "", opened.child.cold_start_s
                asyncio.run(self._ask(name, opened, workloads, Run({**opened.about, **about}, most)))
                measured.memory_mib = memory_mib(opened.child.pid)
        except NotStarted as reason:
            measured.absence = str(reason)
            print(f"{name} was not run: {reason}", flush=True)
        self._keep()

    async def _ask(self, name: str, opened: Opened, workloads: Sequence[str], run: Run) -> None:
        try:
            await self._warm_up(opened)
            for workload in workloads:
                began_s = time.monotonic()
                if workload == OPEN_LOOP and not self._arrivals_per_s:
                    print("d needs the capacity of a peer first: --peer llamacpp --peer vllm", flush=True)
                    continue
                owner = self.known.of(OWN if workload == OWN else name)
                try:
                    found = [
                        await self._round(opened, workload, number, run)
                        for number in range(self.options.rounds)
                    ]
                except AnswerBroken as reason:
                    owner.fail(workload, str(reason))
                    print(f"{name} failed in {workload}: {reason}", flush=True)
                    continue
                owner.add(workload, found, run.about)
                self._keep()
                figures = ", ".join(f"{key} {value:.4g}" for key, value in owner.figures[workload].items())
                print(f"{name} {workload}: {figures}   ({time.monotonic() - began_s:.0f} s)", flush=True)
        finally:
            await opened.door.close()

    async def _warm_up(self, opened: Opened) -> None:
        try:
            await warm_up(opened.door, self.writer)
        except AnswerBroken as error:
            raise NotStarted(f"its first answers failed: {error}") from error

    def _keep(self) -> None:
        """At once: a run of hours may be broken off."""
        if self.options.writes:
            results.write(self.known, self.options.json)

    async def _round(self, opened: Opened, workload: str, number: int, run: Run) -> Figures:
        sizes = QUICK if self.options.quick else FULL
        asked = Round(opened.door, self.writer, sizes, number, self._arrivals_per_s)
        return await (own(asked, run.most, NICE) if workload == OWN else WORKLOADS[workload](asked))

    @property
    def _arrivals_per_s(self) -> float:
        """Of workload d: the larger capacity of the peers, as far as it is known. 0 where none is."""
        known = [self.known.figure(name, CAPACITY, "requests_per_s") for name in CAPACITIES]
        return SHARE_OF_CAPACITY * max((figure for figure in known if figure is not None), default=0.0)


def main(arguments: list[str] | None = None, engines: Mapping[str, Entry] = ENGINES) -> int:
    options = _options(arguments, tuple(dict.fromkeys(entry.engine.peer for entry in engines.values())))
    config = settings.read(EngineConfig)
    model = resolve(options.model, config.data_dir).absolute()
    print(f"{model.name} on {host.processor()}, load {os.getloadavg()[0]:.1f}, commit {host.commit()}")
    if not host.is_quiet():
        print("WARNING: this machine is not quiet", flush=True)
    known = results.read(options.json)
    with tempfile.TemporaryDirectory(prefix="rill-bench-") as scratch:
        place = Place(model, Path(scratch), Path(config.data_dir).absolute() / "bench")
        Bench(place, Writer(model), options, known, engines).measure()
    for verdict in verdicts(known):
        print(report.line(verdict))
    if options.writes:
        labels = {name: entry.label for name, entry in engines.items()}
        report.write(known, labels, options.page, options.pictures)
    return 0


def _options(arguments: list[str] | None, peers: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.engines", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--peer", action="append", choices=peers, help="only these; all of them by default")
    parser.add_argument("--workload", action="append", choices=CHOICES, help="only these; all by default")
    parser.add_argument("--rounds", type=int, default=None, help="medians of so many (5)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round, and nothing is written")
    parser.add_argument("--model", default=EngineConfig().model, help="what MODEL may be (the trial model)")
    parser.add_argument("--page", type=Path, default=None, help=f"the page that gets the tables ({PAGE})")
    parser.add_argument("--json", type=Path, default=None, help=f"what was measured so far ({FIGURES})")
    parser.add_argument("--pictures", type=Path, default=None, help=f"a folder ({PICTURES})")
    options = parser.parse_args(arguments)
    options.peer = options.peer or peers
    options.workload = options.workload or list(CHOICES)
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.writes = not options.quick or None not in (options.page, options.json, options.pictures)
    options.page, options.json = options.page or PAGE, options.json or FIGURES
    options.pictures = options.pictures or PICTURES
    return options


if __name__ == "__main__":
    # So that servers are ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
