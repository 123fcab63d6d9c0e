"""Who runs, who waits, who is sent back; over a runner without a model."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.core.messages import Cancel, EmbedTexts
from inference.core.sequence import ALLOWED_MOVES, Sequence, State
from tests.inference.core.driver import admit
from tests.inference.core.fakes import expected, make_fake_core


def prompt_of(length: int, start: int = 0) -> list[int]:
    return [(start + 7 * place) % 50 for place in range(length)]


def test_preempted_sequence_keeps_its_place_and_its_answer() -> None:
    core = make_fake_core(num_blocks=12, max_batch=4)
    requests = [admit(prompt_of(9, start), max_tokens=24) for start in range(4)]
    core.driver.run(*requests)
    stats = core.driver.loop.stats()
    assert stats.preemptions > 0
    for request in requests:
        assert core.driver.ids(request) == expected(request.prompt_ids, 24)
    assert list(core.driver.finished) == [request.id for request in requests]
    for request in requests:
        end = core.driver.end(request)
        assert end.prompt_tokens == end.reused_head_tokens + end.reused_prefix_tokens + end.prefilled_tokens


def test_the_newest_of_the_lowest_priority_is_preempted() -> None:
    core = make_fake_core(num_blocks=8, max_batch=4)
    important = admit(prompt_of(6, 1), max_tokens=20, priority=-1, id="important")
    ordinary = [admit(prompt_of(6, n), max_tokens=20, id=f"ordinary-{n}") for n in (2, 3)]
    core.driver.step(*ordinary, important)
    while not core.scheduler.waiting:
        core.driver.step()
    assert [sequence.id for sequence in core.scheduler.waiting] == ["ordinary-3"]
    core.driver.run()
    assert core.driver.ids(important) == expected(important.prompt_ids, 20)


def test_waiting_order_is_priority_then_arrival() -> None:
    core = make_fake_core(max_batch=1, policy="priority", ageing_s=1000.0)
    requests = [
        admit(prompt_of(3), max_tokens=2, priority=p, id=f"{p}-{n}") for n, p in enumerate((1, 0, 1, 0, -1))
    ]
    core.driver.step(admit(prompt_of(3), max_tokens=2, id="first"))
    pack = core.driver.step(*requests)
    core.driver.run()
    assert list(core.driver.finished) == ["first", "-1-4", "0-1", "0-3", "1-0", "1-2"]
    assert pack.positions == [("-1-4", 0), ("0-1", 1), ("0-3", 2), ("1-0", 3), ("1-2", 4)]


def test_background_work_waits_until_nobody_else_is_here() -> None:
    core = make_fake_core(step_tokens=16)
    warm = admit(prompt_of(60), max_tokens=0, is_background=True, conversation=b"c", id="warm")
    core.driver.step(warm)
    person = admit(prompt_of(10, 3), max_tokens=5, id="person")
    core.driver.step(person)
    while person.id not in core.driver.finished:
        core.driver.step()
    with_person = [batch for batch in core.runner.batches if any(c.sequence.id == "person" for c in batch)]
    assert all(chunk.sequence.id == "person" for batch in with_person for chunk in batch)
    core.driver.run()
    assert core.driver.end(warm).generated_tokens == 0
    follow_up = admit(prompt_of(60), conversation=b"c")
    core.driver.run(follow_up)
    assert core.driver.end(follow_up).prefilled_tokens == 1


def test_background_work_gives_its_blocks_and_its_seat_to_people() -> None:
    core = make_fake_core(num_blocks=16, max_batch=1, step_tokens=16)
    core.driver.step(admit(prompt_of(60), max_tokens=0, is_background=True))
    person = admit(prompt_of(40, 3), max_tokens=4)
    core.driver.run(person)
    assert core.driver.ids(person) == expected(person.prompt_ids, 4)
    assert next(iter(core.driver.finished)) == person.id
    assert core.driver.loop.stats().preemptions == 1


@pytest.mark.parametrize("state", ["waiting", "prefill", "decode", "finished"])
def test_cancel_ends_a_sequence_within_one_step_from_any_state(state: str) -> None:
    core = make_fake_core(max_batch=1, step_tokens=16)
    request = admit(prompt_of(30), max_tokens=10)
    if state == "waiting":
        core.driver.step(admit(prompt_of(3, 5), max_tokens=30, id="other"), request)
    else:
        core.driver.step(request)
        for _ in range({"prefill": 0, "decode": 3, "finished": 30}[state]):
            core.driver.step()
    pack = core.driver.step(
        Cancel(request.id, "cancelled"), Cancel(request.id, "cancelled"), Cancel("unknown", "cancelled")
    )
    if state == "finished":
        assert core.driver.end(request).reason == "length"
        assert pack.finished == []
    else:
        assert [(end.id, end.reason) for end in pack.finished] == [(request.id, "cancelled")]
        assert pack.stats.cancelled == 1
    core.driver.step(Cancel("other", "orphaned"))
    assert core.driver.loop.stats().blocks_used == 0
    assert not core.driver.loop.has_work


@pytest.mark.parametrize(
    ("reason", "num_cancelled"),
    [("stop", 0), ("length", 0), ("repetition", 0), ("cancelled", 1), ("orphaned", 1), ("failed", 1)],
)
def test_an_end_that_the_front_saw_in_the_text_counts_as_no_cancellation(
    reason: str, num_cancelled: int
) -> None:
    core = make_fake_core()
    request = admit(prompt_of(3), max_tokens=10)
    core.driver.step(request)
    core.driver.step(Cancel(request.id, reason))
    assert core.driver.loop.stats().cancelled == num_cancelled


def test_a_prompt_that_can_never_fit_is_refused_and_the_rest_goes_on() -> None:
    core = make_fake_core(num_blocks=8)
    too_long, fits = admit(prompt_of(32)), admit(prompt_of(31), max_tokens=20)
    core.driver.run(too_long, fits, admit([]), admit([7, 50]), id_again := admit([1], max_tokens=1))
    assert core.driver.end(too_long).error.startswith("context_length_exceeded")
    assert (core.driver.end(fits).reason, core.driver.end(fits).generated_tokens) == ("length", 1)
    assert core.driver.end(id_again).reason == "length"
    errors = sorted(end.error.partition(":")[0] for end in core.driver.finished.values() if end.error)
    assert errors == ["context_length_exceeded", "invalid_request", "invalid_request"]


def test_a_second_admission_of_a_live_id_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    core = make_fake_core()
    request = admit(prompt_of(5), max_tokens=6)
    core.driver.run(request, request)
    assert core.driver.ids(request) == expected(request.prompt_ids, 6)
    assert "already here" in caplog.text


@pytest.mark.parametrize("seed", range(20))
def test_requests_of_the_same_moment_never_get_each_others_answers(seed: int) -> None:
    """BA-01: 16 at once, 4 of them in 2 conversations of one user; rows join and leave the running batch."""
    source = random.Random(seed)
    core = make_fake_core(num_blocks=48, max_batch=6, step_tokens=24)
    requests = []
    for number in range(16):
        conversation = b"a" if number in (0, 1) else b"b" if number in (2, 3) else b""
        prompt = [*prompt_of(12), number, *prompt_of(source.randint(1, 9), number)]
        salt = b"one" if number < 4 else bytes([number % 5])
        requests.append(admit(prompt, max_tokens=source.randint(3, 12), conversation=conversation, salt=salt))
        core.driver.step(*requests[-1:])
        for _ in range(source.randint(0, 2)):
            core.driver.step()
    core.driver.run()
    for request in requests:
        assert core.driver.ids(request) == expected(request.prompt_ids, request.max_tokens)


@given(
    sizes=st.lists(
        st.tuples(st.integers(1, 30), st.integers(0, 20), st.integers(0, 3)), min_size=1, max_size=12
    ),
    num_blocks=st.integers(14, 24),
    max_batch=st.integers(1, 5),
)
def test_every_request_ends_whatever_arrives_when(
    sizes: list[tuple[int, int, int]], num_blocks: int, max_batch: int
) -> None:
    core = make_fake_core(num_blocks=num_blocks, max_batch=max_batch, step_tokens=16)
    requests = []
    for length, max_tokens, num_steps in sizes:
        requests.append(
            admit(prompt_of(length, num_steps), max_tokens=max_tokens, conversation=bytes([num_steps]))
        )
        core.driver.step(requests[-1])
        for _ in range(num_steps):
            core.driver.step()
    for _ in range(2000):
        if not core.driver.loop.has_work:
            break
        core.driver.step()
    for request in requests:
        assert core.driver.ids(request) == expected(request.prompt_ids, request.max_tokens)


def test_a_sequence_makes_only_allowed_moves() -> None:
    for state, allowed in ALLOWED_MOVES.items():
        for target in set(State) - allowed:
            sequence = Sequence(admit([1]), 1, 0.0)
            sequence.state = state
            with pytest.raises(AssertionError, match="may not move"):
                sequence.move(target, 1.0)


def test_time_and_blocks_are_booked_by_state() -> None:
    sequence = Sequence(admit([1, 2]), 1, now=10.0)
    sequence.move(State.PREFILL, 12.0)
    sequence.charge_blocks(12.0)
    sequence.blocks = [4, 5]
    sequence.move(State.DECODE, 15.0)
    sequence.move(State.WAITING, 19.0)
    sequence.charge_blocks(19.0)
    sequence.blocks = []
    sequence.move(State.FINISHED, 20.0)
    report = sequence.report(block_bytes=100)
    assert (report.queue_s, report.prefill_s, report.decode_s) == (3.0, 3.0, 4.0)
    assert report.block_seconds == 14.0


def test_a_step_is_shared_by_the_tokens_in_it_and_the_lane_by_nobody() -> None:
    """A step of 4 s with 6 prompt tokens and one of a running answer: 4 s x 6/7 and 4 s x 1/7."""
    core = make_fake_core(encode=lambda texts: np.zeros((len(texts), 2), dtype=np.float32))
    running, reading = admit(prompt_of(3), max_tokens=9), admit(prompt_of(6, 1), max_tokens=1)
    core.driver.step(running)
    before = core.driver.loop.stats()
    core.driver.step(EmbedTexts("texts", [[1, 2]]))
    after = core.driver.loop.stats()
    assert after.device_seconds - before.device_seconds < after.step_seconds_sum - before.step_seconds_sum
    core.driver.step(reading)
    step_s = core.driver.loop.stats().device_seconds - after.device_seconds
    assert core.driver.end(reading).device_seconds == pytest.approx(step_s * 6 / 7)
    core.driver.cancel(running)
    rest_s = core.driver.loop.stats().device_seconds - step_s * 6 / 7
    assert core.driver.end(running).device_seconds == pytest.approx(rest_s)


def test_what_the_queue_waits_for_is_told() -> None:
    """A full batch, then a full pool, then neither."""
    seats = make_fake_core(max_batch=1)
    seats.driver.step(admit(prompt_of(5), max_tokens=30), admit(prompt_of(5, 1), max_tokens=2))
    stats = seats.driver.step().stats
    assert (stats.waiting, stats.waiting_for_seats, stats.waiting_for_blocks) == (1, 1, 0)
    blocks = make_fake_core(num_blocks=12, step_tokens=64)
    blocks.driver.step(admit(prompt_of(24), max_tokens=16), admit(prompt_of(30, 1), max_tokens=2))
    stats = blocks.driver.step().stats
    assert (stats.waiting, stats.waiting_for_seats, stats.waiting_for_blocks) == (1, 0, 1)
    for core in (seats, blocks):
        core.driver.run()
        stats = core.driver.loop.stats()
        assert (stats.waiting, stats.waiting_for_seats, stats.waiting_for_blocks) == (0, 0, 0)
