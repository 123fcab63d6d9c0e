"""What the front makes of a core's reports when it says whether it is ready; there is no process here."""

from __future__ import annotations

from inference.config import EngineConfig
from inference.core.messages import CoreStats, FinishedOut, StepPack, TokenOut
from inference.front.background import PROBE_PREFIX
from inference.front.engine import Engine
from inference.testing.front import scripted_core, scripted_model


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def make_engine() -> tuple[Engine, Time]:
    config, clock = EngineConfig(), Time()
    engine = Engine(config, scripted_model(config), scripted_core(config), clock=clock)
    engine.on_step(StepPack(tokens=[TokenOut("somebody", 1)]))
    assert engine.reason == ""
    return engine, clock


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


async def test_a_long_embedding_job_that_gets_on_leaves_the_engine_ready() -> None:
    engine, clock = make_engine()
    for num_texts in range(1, 10):
        engine.readiness.on_work(True)
        clock.now += 0.8 * engine.config.probe_timeout_s
        assert engine.reason == ""
        engine.on_step(StepPack(stats=CoreStats(embedded_texts=num_texts)))
    engine.readiness.on_work(True)
    clock.now += 0.8 * engine.config.probe_timeout_s
    engine.on_step(StepPack(stats=CoreStats(embedded_texts=9)))
    clock.now += 0.8 * engine.config.probe_timeout_s
    assert "no token" in engine.reason
