"""`python -m inference.simulation`: what the policies do under load, and whether the scheduler keeps its promises.

Prints a table, or JSON with --json. Exit code 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace

from inference.config import EngineConfig
from inference.core.limits import Limits
from inference.simulation.costs import SLOW_CORES, TWO_CORES
from inference.simulation.engine import SimulatedEngine
from inference.simulation.load import Crowd, Load
from inference.simulation.results import Percentiles, Result, result_of

DEVICES = {"two-cores": TWO_CORES, "slow-cores": SLOW_CORES}
# The slow device is 30 times slower and has only a quarter of its time for prefill while anybody reads along.
DEVICE_LOADS = {"two-cores": 1.0, "slow-cores": 1 / 60}
POLICIES = ("fcfs", "lpm", "priority")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m inference.simulation", description=__doc__)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=DEVICES, default="two-cores")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    results = [
        simulate(limits, options.device, options.requests, options.seed) for limits in compared_limits()
    ]
    print(json.dumps([asdict(result) for result in results], indent=2) if options.json else table(results))
    return int(not all(promise.is_kept for result in results for promise in result.promises))


def compared_limits() -> list[Limits]:
    """The defaults under each policy, and the first once more without fair shares."""
    defaults = Limits.of(EngineConfig())
    policies = [replace(defaults, policy=policy) for policy in POLICIES]
    return [*policies, replace(defaults, policy=POLICIES[0], fair_shares=False)]


def simulate(limits: Limits, device: str, num_requests: int, seed: int) -> Result:
    load = Load(num_requests=num_requests)
    pace = DEVICE_LOADS[device]
    load = replace(load, arrivals_per_s=load.arrivals_per_s * pace, think_s=load.think_s / pace)
    crowd = Crowd(load, seed)
    engine = SimulatedEngine(limits, DEVICES[device], seed)
    return result_of(engine.run(crowd.first_arrivals(), crowd.after), limits)


def table(results: list[Result]) -> str:
    """Markdown, so that it can stand in the documentation as it is."""
    lines = [
        "| policy | shares | users | requests | TTFT s p50 / p95 / p99 | TPOT ms p50 / p95 / p99 |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        shares = "fair" if result.has_fair_shares else "none"
        for row in result.classes:
            ttft, tpot = _three(row.ttft_s, 1, 1), _three(row.tpot_s, 1000, 0)
            lines.append(
                f"| {result.policy} | {shares} | {row.name} | {row.num_requests} | {ttft} | {tpot} |"
            )
    lines += [
        "",
        "| policy | shares | simulated s | steps | step with streams ms | preemptions | tokens prefilled | reused |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        shares = "fair" if result.has_fair_shares else "none"
        lines.append(
            f"| {result.policy} | {shares} | {result.simulated_s:.0f} | {result.num_steps} "
            f"| {_three(result.step_s, 1000, 0)} | {result.num_preemptions} "
            f"| {result.prefilled_tokens} | {result.reused_tokens} |"
        )
    lines += ["", "| policy | shares | promise | measured | at most | kept |", "|---|---|---|---|---|---|"]
    for result in results:
        shares = "fair" if result.has_fair_shares else "none"
        lines += [
            f"| {result.policy} | {shares} | {promise.name} | {promise.value:.2f} | {promise.at_most:.2f} "
            f"| {'yes' if promise.is_kept else 'NO'} |"
            for promise in result.promises
        ]
    return "\n".join(lines)


def _three(values: Percentiles, factor: float, digits: int) -> str:
    return " / ".join(f"{value * factor:.{digits}f}" for value in (values.p50, values.p95, values.p99))


if __name__ == "__main__":
    sys.exit(main())
