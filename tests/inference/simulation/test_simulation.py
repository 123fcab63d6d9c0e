"""The scheduler's promises under random load, over a cost model: the numbers of `make simulate`, on a smaller load."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest

from inference.config import EngineConfig
from inference.core.chunk import Chunk
from inference.core.limits import Limits
from inference.core.messages import Admit
from inference.core.scheduler import Scheduler
from inference.simulation.__main__ import main, simulate
from inference.simulation.costs import SLOW_CORES, TWO_CORES
from inference.simulation.engine import PromiseBroken, SimulatedEngine
from inference.simulation.load import GREEDY, Arrival, Crowd, Load
from inference.simulation.results import PACING_FACTOR, result_of
from inference.simulation.service import bound

LIMITS = Limits.of(EngineConfig())


def no_reply(arrival: Arrival, generated: list[int], now: float) -> None:
    return None


def arrival(user: str, number: int, *, prompt: int = 200, answer: int = 40, at_s: float = 0.0) -> Arrival:
    ids = random.Random(f"{user}-{number}").choices(range(50_000), k=prompt)
    return Arrival(at_s, user, Admit(f"{user}-{number}", ids, GREEDY, answer, [], user.encode(), b""))


@pytest.mark.parametrize("policy", ["fcfs", "lpm", "priority"])
def test_every_promise_is_kept_under_a_flood(policy: str) -> None:
    result = simulate(replace(LIMITS, policy=policy), "two-cores", 600, seed=5)
    assert [promise for promise in result.promises if not promise.is_kept] == []
    assert len(result.promises) == 4
    assert result.num_preemptions > 0
    assert result.reused_tokens > 0


def test_fewer_seats_beside_interactive_requests_keep_the_promises_too() -> None:
    result = simulate(replace(LIMITS, interactive_batch=12), "two-cores", 600, seed=6)
    assert [promise for promise in result.promises if not promise.is_kept] == []


def test_a_device_too_slow_for_the_target_still_reads_prompts_and_slows_streams_by_a_third_at_most() -> None:
    engine = SimulatedEngine(LIMITS, SLOW_CORES, seed=2)
    load = Load(num_requests=90, flood=6, arrivals_per_s=0.05)
    crowd = Crowd(load, seed=2)
    run = engine.run(crowd.first_arrivals(), crowd.after)
    assert result_of(run, LIMITS).promises[0].is_kept
    beside_streams = [seconds - bare for seconds, bare in run.stream_steps]
    assert sum(beside_streams) > 0.1 * sum(seconds for seconds, _ in run.stream_steps)


def test_four_streams_keep_their_pace_while_a_prompt_of_3000_tokens_is_read() -> None:
    """No gap of a stream exceeds the target and a quarter; in one piece the prompt would stop them for 1.4 s."""
    costs = replace(TWO_CORES, noise=0.0, spike_share=0.0)
    streams = [arrival(f"reader-{number}", number, prompt=60, answer=80) for number in range(4)]
    late = arrival("writer", 9, prompt=3000, answer=2, at_s=0.2)
    run = SimulatedEngine(LIMITS, costs).run([*streams, late], no_reply)
    answers = {answer.arrival.user: answer for answer in run.answers}
    gaps = [
        later - earlier
        for number in range(4)
        for earlier, later in pairwise(answers[f"reader-{number}"].token_times)
    ]
    assert max(gaps) <= PACING_FACTOR * LIMITS.target_tpot_s
    assert answers["writer"].ttft_s <= 2.5
    assert all(len(answers[f"reader-{number}"].token_ids) == 80 for number in range(4))


@pytest.mark.parametrize("fair_shares", [True, False])
def test_the_gap_between_two_backlogged_users_is_bounded_only_by_fair_shares(fair_shares: bool) -> None:
    """One sends ten times the requests of the other, all before: in the order of arrival it would get everything."""
    limits = replace(LIMITS, fair_shares=fair_shares, max_batch=4)
    arrivals = [arrival("greedy", number) for number in range(200)]
    arrivals += [arrival("modest", number) for number in range(20)]
    run = SimulatedEngine(limits, TWO_CORES).run(arrivals, no_reply)
    assert (run.service_gap <= bound(limits, longest_prompt=200, longest_answer=40)) is fair_shares
    ends = {answer.arrival.admit.id: answer.ended_at for answer in run.answers}
    assert (max(ends[f"modest-{number}"] for number in range(20)) < 0.3 * run.ended_at) is fair_shares


def test_a_run_repeats_exactly() -> None:
    first, second = (simulate(LIMITS, "two-cores", 120, seed=9) for _ in range(2))
    assert first == second


def test_a_scheduler_that_lets_a_stream_stand_still_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = Scheduler.schedule

    def forgets_one(self: Scheduler, now: float, lane_tokens: int = 0) -> list[Chunk]:
        chunks = schedule(self, now, lane_tokens)
        return chunks[1:] if len(chunks) > 3 else chunks

    monkeypatch.setattr(Scheduler, "schedule", forgets_one)
    with pytest.raises(PromiseBroken, match="stood still"):
        simulate(LIMITS, "two-cores", 120, seed=1)


def test_the_command_prints_what_it_found_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--requests", "90", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [(result["policy"], result["has_fair_shares"]) for result in results] == [
        ("fcfs", True),
        ("lpm", True),
        ("priority", True),
        ("fcfs", False),
    ]
    assert main(["--requests", "90"]) == 0
    assert "| lpm | fair | polite |" in capsys.readouterr().out


def test_the_simulation_needs_no_torch() -> None:
    code = "import sys; from inference.simulation.__main__ import main; main(['--requests', '60'])"
    code += "; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
