"""What was measured of every engine so far, as a JSON file: a run of one engine keeps what others found.

Knows the form. The figures of a workload are medians over its rounds, which stand beside them.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench.engines.workloads import Figures


@dataclass(slots=True)
class Measured:
    """One engine, by workload. An about says what it was and where it ran; `absence` is why it was not run, or empty.

    Memory and start are those of its last run.
    """

    absence: str = ""
    memory_mib: float = 0.0
    cold_start_s: float = 0.0
    abouts: dict[str, dict[str, str]] = field(default_factory=dict)
    figures: dict[str, Figures] = field(default_factory=dict)
    rounds: dict[str, list[Figures]] = field(default_factory=dict)

    def add(self, workload: str, rounds: Sequence[Figures], about: Mapping[str, str]) -> None:
        self.abouts[workload] = dict(about)
        self.rounds[workload] = list(rounds)
        self.figures[workload] = {
            name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]
        }

    def fail(self, workload: str, reason: str) -> None:
        """What an earlier run found of it holds no more."""
        self.absence = f"failed in {workload}: {reason}"
        for known in (self.abouts, self.figures, self.rounds):
            known.pop(workload, None)


@dataclass(slots=True)
class Results:
    engines: dict[str, Measured] = field(default_factory=dict)

    def of(self, engine: str) -> Measured:
        return self.engines.setdefault(engine, Measured())

    def figure(self, engine: str, workload: str, name: str) -> float | None:
        known = self.engines.get(engine, Measured()).figures
        return known.get(workload, {}).get(name)


def read(file: Path) -> Results:
    """Nothing, where nothing was measured yet."""
    if not file.is_file():
        return Results()
    found = json.loads(file.read_text(encoding="utf-8"))
    return Results({name: Measured(**measured) for name, measured in found["engines"].items()})


def write(results: Results, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(results), indent=1, sort_keys=True) + "\n", encoding="utf-8")
