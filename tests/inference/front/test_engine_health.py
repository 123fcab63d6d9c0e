"""What the front makes of a core's reports when it says whether it is ready; there is no process here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference.config import EngineConfig
from inference.core.messages import (
    CoreReady,
    CoreStats,
    FinishedOut,
    PrefillProgress,
    StepPack,
    TokenOut,
)
from inference.front.background import PROBE_PREFIX
from inference.front.engine import Engine
from inference.front.generation import ORPHANED, OVERDUE, Generation
from inference.testing.front import scripted_core, scripted_model
from inference.types import GenerateRequest, Owner, Segment

READY = CoreReady("r", 4096, "none", "none", 1, 16, 1024)


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def make_engine(**settings: Any) -> tuple[Engine, Time]:
    config, clock = EngineConfig(**settings), Time()
    engine = Engine(config, scripted_model(config), scripted_core(config), clock=clock)
    engine.on_step(StepPack(tokens=[TokenOut("somebody", 1)]))
    assert engine.reason == ""
    return engine, clock


def request(name: str) -> GenerateRequest:
    return GenerateRequest(name, (Segment("user", "Hi"),), Owner("t", "u"), deadline_s=10_000)


def found(engine: Engine, name: str) -> Generation:
    generation = engine.archive.find(name)
    assert generation is not None
    return generation


async def test_a_failed_probe_means_not_ready_until_the_next_token() -> None:
    engine, _ = make_engine()
    probe = f"{PROBE_PREFIX}1"
    engine.on_step(StepPack(finished=[FinishedOut(probe, "failed", "no such kernel")]))
    assert "no such kernel" in engine.reason
    engine.on_step(StepPack(tokens=[TokenOut(probe, 1)], finished=[FinishedOut(probe, "length")]))
    assert engine.reason == ""


async def test_a_failed_answer_alone_says_nothing_about_the_engine() -> None:
    engine, _ = make_engine()
    engine.on_step(StepPack(finished=[FinishedOut("somebody", "failed", "bad value")]))
    assert engine.reason == ""


@pytest.mark.parametrize("what", ["embedded_texts", "verified_pairs"])
async def test_a_long_job_of_the_lane_that_gets_on_leaves_the_engine_ready(what: str) -> None:
    engine, clock = make_engine()
    for num_texts in range(1, 10):
        engine.readiness.on_work(True)
        clock.now += 0.8 * engine.config.probe_timeout_s
        assert engine.reason == ""
        engine.on_step(StepPack(stats=CoreStats(**{what: num_texts})))
    engine.readiness.on_work(True)
    clock.now += 0.8 * engine.config.probe_timeout_s
    engine.on_step(StepPack(stats=CoreStats(**{what: 9})))
    clock.now += 0.8 * engine.config.probe_timeout_s
    assert "no token" in engine.reason


async def test_probe_after_probe_that_fails_is_a_complaint_until_a_token_comes() -> None:
    engine, _ = make_engine()
    for number in range(2):
        engine.on_step(StepPack(finished=[FinishedOut(f"{PROBE_PREFIX}{number}", "failed", "no kernel")]))
        assert engine.complaint() == ""
    engine.on_step(StepPack(tokens=[TokenOut("somebody", 1)]))
    for number in range(3):
        assert engine.complaint() == ""
        read = [PrefillProgress(f"{PROBE_PREFIX}{number}", 1, 1)]  # a prompt that was read is no token
        engine.on_step(
            StepPack(progress=read, finished=[FinishedOut(f"{PROBE_PREFIX}{number}", "failed", "no kernel")])
        )
    assert "3 probes in a row failed" in engine.complaint()
    assert "no kernel" in engine.reason
    engine.on_lost("killed")
    assert engine.complaint() == ""


async def test_a_core_that_steps_without_a_token_while_nothing_else_runs_is_a_complaint() -> None:
    engine, clock = make_engine()
    engine.on_ready(READY)  # sends a probe
    for _ in range(4):
        engine.tick()
        assert engine.complaint() == ""
        clock.now += 0.3 * engine.config.step_timeout_s
        engine.on_step(StepPack())
    assert "nothing else to do" in engine.complaint()
    engine.on_step(StepPack(tokens=[TokenOut(f"{PROBE_PREFIX}1", 1)]))
    assert engine.complaint() == ""


async def test_a_core_with_other_work_may_let_the_probe_wait() -> None:
    engine, clock = make_engine()
    engine.on_ready(READY)
    await engine.submit(request("a"))
    for _ in range(10):
        engine.tick()
        clock.now += 0.5 * engine.config.step_timeout_s
        assert engine.complaint() == ""


async def test_a_gateway_is_not_replaced_for_what_its_upstream_does() -> None:
    engine, _ = make_engine(upstream="http://127.0.0.1:1")
    for number in range(5):
        engine.on_step(StepPack(finished=[FinishedOut(f"{PROBE_PREFIX}{number}", "failed", "no upstream")]))
    assert engine.complaint() == ""


class Reader:
    def notice(self, generation_id: str) -> None:
        pass


async def test_an_answer_that_nobody_follows_for_its_time_ends_as_orphaned_and_a_followed_one_does_not() -> (
    None
):
    engine, clock = make_engine(deadline_s=10_000)
    engine.on_ready(READY)
    for name in "abc":
        await engine.submit(request(name))
    followed, left, never = (found(engine, name) for name in "abc")
    readers = Reader(), Reader()
    followed.follow(readers[0])
    left.follow(readers[1])
    clock.now += 0.7 * engine.config.orphan_ttl_s
    left.unfollow(readers[1])
    engine.tick()
    assert never.ending is None
    clock.now += 0.5 * engine.config.orphan_ttl_s
    engine.tick()
    assert never.ending == ORPHANED
    assert left.ending is None
    assert followed.ending is None
    clock.now += 0.6 * engine.config.orphan_ttl_s
    engine.tick()
    assert left.ending == ORPHANED


async def test_deadlines_are_kept_also_behind_an_answer_that_cannot_be_ended_in_order() -> None:
    engine, clock = make_engine()
    engine.on_ready(READY)
    await engine.submit(replace(request("a"), deadline_s=1))
    await engine.submit(replace(request("b"), deadline_s=1))
    broken, other = found(engine, "a"), found(engine, "b")
    broken._stops = None  # type: ignore[assignment]
    clock.now += 2
    engine.tick()
    assert broken.log.is_done
    assert other.ending == OVERDUE
