"""How much is read beside running streams, on a made-up clock."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from inference.core.pacing import MIN_PREFILL_TOKENS, PREFILL_SHARE, Pacer, StepCost
from tests.inference.core.driver import admit
from tests.inference.core.fakes import make_fake_core

Device = Callable[[int, int, int], float]  # seconds for (prompt tokens, decoding rows, lane tokens)


def device(base: float, token: float, row: float, lane: float = 0.0002) -> Device:
    return lambda tokens, rows, lane_tokens: base + token * tokens + row * rows + lane * lane_tokens


FAST = device(0.008, 0.00045, 0.0005)


def drive(pacer: Pacer, seconds: Device, num_steps: int, seed: int = 1, noise: float = 0.05) -> list[float]:
    """Steps with 1 to 16 streams and a prompt that never ends; gives their lengths without noise."""
    source = random.Random(seed)
    lengths = []
    for _ in range(num_steps):
        rows, lane = source.randint(1, 16), source.choice([0, 0, 64, 200])
        tokens = pacer.budget(rows, lane)
        lengths.append(seconds(tokens, rows, lane))
        measured = lengths[-1] * source.lognormvariate(0.0, noise)
        pacer.observe(StepCost(measured, tokens, rows, lane))
    return lengths


def test_steps_come_to_take_the_target_whatever_else_they_hold() -> None:
    lengths = sorted(drive(Pacer(0.2, 512), FAST, 200)[20:])
    assert lengths[len(lengths) // 5] > 0.18  # now and then a shorter one shows what a token costs
    assert lengths[-1] < 0.23


def test_a_full_step_that_meets_the_target_is_left_alone() -> None:
    pacer = Pacer(0.2, 128)
    drive(pacer, FAST, 50)
    assert pacer.budget(4, 0) == 128


def test_a_wrong_guess_does_not_confirm_itself() -> None:
    """Killed by steps of one size: after a frozen first step all the time is then put down to the base for ever."""
    pacer, seconds = Pacer(0.2, 64), device(0.04, 0.005, 0.0)
    pacer.observe(StepCost(3.0, 3, 0, 0))
    for _ in range(60):
        tokens = pacer.budget(1, 0)
        pacer.observe(StepCost(seconds(tokens, 1, 0), tokens, 1, 0))
    assert seconds(pacer.budget(1, 0), 1, 0) == pytest.approx(0.2, rel=0.1)


def test_without_a_target_every_step_is_full() -> None:
    pacer = Pacer(float("inf"), 512)
    drive(pacer, FAST, 30)
    assert pacer.budget(16, 5000) == 512


def test_steps_that_a_neighbour_slowed_down_hardly_change_the_next() -> None:
    """Killed by least squares over absolute errors: one step in eight takes ten times as long."""
    pacer, source = Pacer(0.2, 512), random.Random(3)

    def disturbed(tokens: int, rows: int, lane: int) -> float:
        return FAST(tokens, rows, lane) * (10 if source.random() < 1 / 8 else 1)

    drive(pacer, disturbed, 300)
    assert FAST(pacer.budget(8, 0), 8, 0) == pytest.approx(0.2, rel=0.15)


def test_a_device_that_becomes_slower_for_good_is_followed() -> None:
    pacer = Pacer(0.2, 512)
    drive(pacer, FAST, 100)
    slower = device(0.024, 0.00135, 0.0015)
    drive(pacer, slower, 100, seed=2)
    assert slower(pacer.budget(8, 0), 8, 0) == pytest.approx(0.2, rel=0.15)
    drive(pacer, FAST, 100, seed=3)
    assert FAST(pacer.budget(8, 0), 8, 0) == pytest.approx(0.2, rel=0.15)


def test_a_long_answer_without_prompts_does_not_make_it_forget_what_prompts_cost() -> None:
    pacer = Pacer(0.2, 512)
    drive(pacer, FAST, 60)
    before = pacer.budget(8, 0)
    for _ in range(500):
        pacer.observe(StepCost(FAST(0, 8, 0), 0, 8, 0))
    assert pacer.budget(8, 0) == pytest.approx(before, rel=0.15)


def test_where_decoding_alone_misses_the_target_prefill_still_gets_a_quarter_of_the_device() -> None:
    slow = device(0.24, 0.002, 0.015)
    pacer = Pacer(0.2, 512)
    drive(pacer, slow, 100)
    tokens = pacer.budget(8, 0)
    bare = slow(0, 8, 0)
    assert slow(tokens, 8, 0) == pytest.approx(bare * (1 + PREFILL_SHARE), rel=0.1)
    assert tokens >= MIN_PREFILL_TOKENS


def test_a_price_learned_from_one_frozen_step_is_unlearned() -> None:
    """The floor keeps prefill going, so that later steps can show what a token really costs."""
    pacer = Pacer(0.2, 512)
    pacer.observe(StepCost(60.0, 24, 0, 0))
    assert pacer.budget(1, 0) >= MIN_PREFILL_TOKENS
    drive(pacer, FAST, 60)
    assert FAST(pacer.budget(8, 0), 8, 0) == pytest.approx(0.2, rel=0.2)


def test_the_prefill_rate_is_that_of_full_steps_and_unknown_before_any() -> None:
    pacer = Pacer(0.2, 512)
    pacer.observe(StepCost(0.01, 0, 3, 0))
    assert pacer.prefill_tokens_per_s == 0.0
    drive(pacer, FAST, 100)
    assert pacer.prefill_tokens_per_s == pytest.approx(512 / FAST(512, 0, 0), rel=0.15)


def test_the_prefill_rate_is_unknown_where_rows_explain_every_step() -> None:
    """Killed by dividing by the price of a full step, which may be nothing: the core died of its own statistics."""
    pacer = Pacer(0.2, 512)
    for rows, tokens, seconds in ((4, 128, 0.001), (8, 0, 0.008), (16, 16, 0.008)):
        pacer.observe(StepCost(seconds, tokens, rows, 0))
    assert pacer.budget(32, 0) == 512
    assert pacer.prefill_tokens_per_s == 0.0


def test_only_interactive_streams_make_steps_smaller() -> None:
    prompt = [place % 50 for place in range(200)]
    sizes = {}
    for is_offline in (False, True):
        core = make_fake_core(num_blocks=128, step_tokens=64, target_tpot_s=0.2)
        core.driver.step(admit([1, 2, 3], max_tokens=60, is_offline=is_offline))
        drive(core.scheduler.pacer, device(0.04, 0.005, 0.0), 60)
        core.driver.step(reader := admit(prompt, max_tokens=1, is_offline=True))
        sizes[is_offline] = [c.num_tokens for c in core.runner.batches[-1] if c.sequence.id == reader.id]
        stats = core.driver.loop.stats()
        assert stats.prefill_tokens_per_s == pytest.approx(64 / (0.04 + 64 * 0.005), rel=0.2)
        assert stats.step_target_tokens == (64 if is_offline else sizes[is_offline][0])
    assert sizes[True] == [63]
    assert sizes[False][0] == pytest.approx(32, rel=0.15)
