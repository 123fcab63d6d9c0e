"""From a request to what the core is told: limits that follow the load, and what a refusal costs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from inference.config import EngineConfig
from inference.core.messages import Admit, CoreStats, FinishedOut, PrefillProgress, StepPack, TokenOut
from inference.errors import ContextLengthExceeded, QueueFull
from inference.front.engine import Engine
from inference.front.prompts import PromptBuilder
from inference.testing.front import scripted_model
from inference.types import GenerateRequest, Owner, Sampling, Segment, Submitted
from tests.inference.front.idle_core import READY, engine_over, told

MODEL = scripted_model(EngineConfig())
GLUE = len(MODEL.prompts.build([Segment("user", "")]).ids)


def request(name: str, num_tokens: int = 100, **fields: Any) -> GenerateRequest:
    """A request whose prompt has so many tokens; a byte is one."""
    return GenerateRequest(name, (Segment("user", "x" * (num_tokens - GLUE)),), Owner("t", "u"), **fields)


async def refused(engine: Engine, asked: GenerateRequest) -> QueueFull:
    with pytest.raises(QueueFull) as refusal:
        await engine.submit(asked)
    return refusal.value


async def test_what_is_still_to_be_read_counts_also_of_prompts_that_are_half_read() -> None:
    engine = engine_over(max_queued_tokens=256)
    assert (await engine.submit(request("a", 200))).prompt_tokens == 200
    assert "200 prompt tokens are waiting" in (await refused(engine, request("b"))).message
    engine.on_step(StepPack(progress=[PrefillProgress("a", 100, 200)]))
    assert "100 prompt tokens" in (await refused(engine, request("b", 157))).message
    await engine.submit(request("b", 156))
    engine.on_step(StepPack(tokens=[TokenOut("a", 0x61), TokenOut("b", 0x61)]))
    await engine.submit(request("c", 256))


async def test_the_measured_rate_decides_how_many_tokens_may_wait_and_when_to_come_back() -> None:
    engine = engine_over(target_ttft_s=10.0)
    engine.on_step(StepPack(stats=CoreStats(prefill_tokens_per_s=25.0)))
    await engine.submit(request("a", 200))
    refusal = await refused(engine, request("b"))
    assert "200 prompt tokens are waiting, 250 may" in refusal.message
    assert refusal.retry_after_s == pytest.approx((200 + 100 - 250) / 25)
    engine.on_step(StepPack(stats=CoreStats(prefill_tokens_per_s=50.0)))
    await engine.submit(request("b"))


async def test_answers_that_end_no_longer_count_as_waiting() -> None:
    engine = engine_over(max_queued_tokens=256)
    await engine.submit(request("a", 250))
    engine.cancel("a", "")
    await engine.submit(request("b", 250))


async def test_the_time_to_come_back_follows_how_long_answers_ran_not_how_long_they_waited() -> None:
    time = [0.0]
    engine = engine_over(max_batch=1, max_queue=1)
    engine._intake._parts = replace(engine._intake._parts, clock=lambda: time[0])
    for number in range(60):
        await engine.submit(request(f"{number}"))
        time[0] += 1000  # in the queue
        engine.on_step(StepPack(tokens=[TokenOut(f"{number}", 0x61)]))
        time[0] += 5
        engine.on_step(StepPack(finished=[FinishedOut(f"{number}", "stop")]))
    await engine.submit(request("a"))
    await engine.submit(request("b"))
    assert (await refused(engine, request("c"))).retry_after_s == pytest.approx(10, rel=0.05)


async def test_a_burst_is_taken_up_to_the_limits_and_the_rest_is_refused_at_once() -> None:
    engine = engine_over(max_batch=2, max_queue=3)
    results = await asyncio.gather(
        *(engine.submit(request(f"{number}")) for number in range(500)), return_exceptions=True
    )
    assert sum(isinstance(result, Submitted) for result in results) == 5
    assert sum(isinstance(result, QueueFull) for result in results) == 495
    assert engine.archive.num_live == len(told(engine, Admit)) == 5
    assert engine.stats().refused == 495
    assert not engine._intake._submitting


async def test_refusals_by_estimate_read_no_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_over(max_queued_tokens=256)
    await engine.submit(request("a", 250))

    def build(self: PromptBuilder, segments: Sequence[Segment], **options: Any) -> None:
        raise AssertionError("a refusal costs no tokenising")

    monkeypatch.setattr(PromptBuilder, "build", build)
    long = "x" * 16 * READY.max_context
    for may_trim in (True, False):
        with pytest.raises(
            ContextLengthExceeded, match=f"at least {READY.max_context} tokens.*{READY.max_context}"
        ):
            await engine.submit(replace(request("b", may_trim=may_trim), segments=(Segment("user", long),)))
        await refused(engine, request("b", 4000, may_trim=may_trim))


async def test_a_long_history_that_may_be_trimmed_is_not_refused_for_its_length() -> None:
    engine = engine_over()
    turns = [Segment(role, "x" * 1000) for _ in range(100) for role in ("user", "assistant")]
    asked = GenerateRequest("a", (*turns, Segment("user", "last")), Owner("t", "u"), may_trim=True)
    submitted = await engine.submit(asked)
    assert submitted.trimmed_messages > 0
    assert await engine.submit(asked) == submitted
    assert engine.stats().trimmed_requests == 1
    (admit,) = told(engine, Admit)
    assert len(admit.prompt_ids) == submitted.prompt_tokens <= READY.max_context * 3 // 4


async def test_what_an_empty_pool_cannot_hold_is_refused_at_once() -> None:
    engine = engine_over(msgspec.structs.replace(READY, blocks_total=16))
    assert engine.info().max_context == 256
    with pytest.raises(ContextLengthExceeded, match="has 400 tokens, the model takes 256"):
        await engine.submit(request("a", 400))
    assert (await engine.submit(request("a", 100))).prompt_tokens == 100


async def test_the_core_is_told_all_that_a_request_asks() -> None:
    engine = engine_over(max_output_tokens=50)
    sampling = Sampling(stop_ids=(7, 9), min_tokens=3, max_tokens=80)
    await engine.submit(request("a", sampling=sampling, priority=2, is_offline=True))
    (admit,) = told(engine, Admit)
    assert set(admit.stop_ids) == {7, 9} | engine.model.stop_ids
    assert (admit.priority, admit.is_offline, admit.max_tokens) == (2, True, 50)
    assert admit.sampling.min_tokens == 3


@pytest.mark.parametrize(
    ("num_prompt", "asked", "given"), [(4095, None, 1), (4000, 1000, 96), (4000, 10, 10)]
)
async def test_an_answer_is_capped_to_the_room_and_never_below_one(
    num_prompt: int, asked: int | None, given: int
) -> None:
    engine = engine_over()
    await engine.submit(request("a", num_prompt, sampling=Sampling(max_tokens=asked)))
    (admit,) = told(engine, Admit)
    assert admit.max_tokens == given
