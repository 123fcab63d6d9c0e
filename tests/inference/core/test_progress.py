"""Nobody waits for ever and no stream stands still, whatever arrives when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.core.messages import Cancel, Command
from inference.core.sequence import State
from tests.inference.core.driver import admit
from tests.inference.core.fakes import FakeCore, expected, make_fake_core

MAX_STEPS = 4000


def prompt_of(length: int, start: int = 0) -> list[int]:
    return [(start + 7 * place) % 50 for place in range(length)]


def step(core: FakeCore, *commands: Command) -> None:
    """One step, in which every stream must advance unless it was preempted, and something must run."""
    ended = {command.id for command in commands if isinstance(command, Cancel)}
    streams = [s for s in core.scheduler.running if s.state is State.DECODE and not s.is_background]
    lengths = [len(s.token_ids) for s in streams]
    num_batches = len(core.runner.batches)
    core.driver.step(*commands)
    for sequence, length in zip(streams, lengths, strict=True):
        if sequence.state is not State.WAITING and sequence.id not in ended:
            assert len(sequence.token_ids) == length + 1, f"{sequence.id} stood still"
    if core.scheduler.waiting and not core.scheduler.running:
        assert len(core.runner.batches) > num_batches, "work waits, everything is free, nothing runs"


requests = st.fixed_dictionaries(
    {
        "length": st.integers(1, 40),
        "start": st.integers(0, 3),
        "max_tokens": st.integers(0, 20),
        "salt": st.sampled_from([b"one", b"two", b"three"]),
        "conversation": st.sampled_from([b"", b"a", b"b"]),
        "priority": st.integers(-1, 1),
        "kind": st.sampled_from(["chat", "chat", "offline", "background"]),
        "steps_until_next": st.integers(0, 4),
        "cancelled_after": st.sampled_from([None, None, 0, 2]),
    }
)


@pytest.mark.parametrize("policy", ["fcfs", "lpm", "priority"])
@given(
    arrivals=st.lists(requests, min_size=1, max_size=14),
    num_blocks=st.integers(16, 28),
    max_batch=st.integers(1, 5),
    interactive_batch=st.integers(0, 3),
    fair_shares=st.booleans(),
    target_tpot_s=st.sampled_from([0.001, 5.0, float("inf")]),
)
def test_every_request_ends_and_every_stream_advances(
    policy: str,
    arrivals: list[dict],
    num_blocks: int,
    max_batch: int,
    interactive_batch: int,
    fair_shares: bool,
    target_tpot_s: float,
) -> None:
    core = make_fake_core(
        num_blocks,
        max_batch,
        step_tokens=16,
        interactive_batch=interactive_batch,
        policy=policy,
        fair_shares=fair_shares,
        target_tpot_s=target_tpot_s,
    )
    sent = []
    for one in arrivals:
        request = admit(
            prompt_of(one["length"], one["start"]),
            max_tokens=one["max_tokens"],
            salt=one["salt"],
            conversation=one["conversation"],
            priority=one["priority"],
            is_offline=one["kind"] == "offline",
            is_background=one["kind"] == "background",
        )
        sent.append((request, one["cancelled_after"] is not None))
        step(core, request)
        for number in range(one["steps_until_next"]):
            step(core, *([Cancel(request.id, "cancelled")] if one["cancelled_after"] == number else []))
    for _ in range(MAX_STEPS):
        if not core.driver.loop.has_work:
            break
        step(core)
    assert not core.driver.loop.has_work
    assert core.driver.loop.stats().blocks_used == 0
    for request, may_be_cancelled in sent:
        ids = core.driver.ids(request)
        assert ids == expected(request.prompt_ids, len(ids))
        if not may_be_cancelled:
            assert len(ids) == request.max_tokens


def test_a_request_that_all_blocks_have_no_room_for_fails_and_the_next_ones_run() -> None:
    """The context limit keeps such a request out; should it lie about the pool, the core must not wait for ever."""
    core = make_fake_core(num_blocks=8, max_context=1000)
    impossible, possible = admit(prompt_of(40)), admit(prompt_of(9, 3), max_tokens=2)
    core.driver.run(impossible, possible)
    assert core.driver.end(impossible).error.startswith("context_length_exceeded")
    assert core.driver.ids(possible) == expected(possible.prompt_ids, 2)


def test_an_answer_that_outgrows_all_blocks_fails_and_gives_them_back() -> None:
    core = make_fake_core(num_blocks=8, max_context=1000)
    endless, possible = admit(prompt_of(20), max_tokens=500), admit(prompt_of(9, 3), max_tokens=2)
    core.driver.run(endless, possible)
    assert core.driver.end(endless).reason == "failed"
    assert core.driver.ids(possible) == expected(possible.prompt_ids, 2)
    assert core.driver.loop.stats().blocks_used == 0


def test_a_huge_answer_reserves_nothing_so_two_conversations_stay_warm() -> None:
    """Each may make 200 tokens, which together the pool could not hold; what is kept is what was made."""
    core = make_fake_core(num_blocks=64, max_batch=2)
    first = [admit(prompt_of(60, n), max_tokens=200, conversation=bytes([n]), stop_ids=[]) for n in (1, 2)]
    core.driver.step(*first)
    for _ in range(6):
        core.driver.step()
    core.driver.step(*(Cancel(request.id, "stop") for request in first))
    for number, request in enumerate(first, start=1):
        answer = core.driver.ids(request)
        following = admit([*request.prompt_ids, *answer, 1, 2], max_tokens=2, conversation=bytes([number]))
        core.driver.run(following)
        assert core.driver.end(following).prefilled_tokens <= 2 + 1
    assert core.driver.loop.stats().preemptions == 0
