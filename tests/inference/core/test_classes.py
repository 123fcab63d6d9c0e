"""Interactive, offline and background work side by side; over a runner without a model."""

from __future__ import annotations

from inference.core.classes import Classes, LatencyClass
from inference.core.scheduler import OFFLINE_PATIENCE_LEVELS
from inference.core.sequence import Sequence
from tests.inference.core.driver import admit
from tests.inference.core.fakes import FakeCore, expected, make_fake_core


def prompt_of(length: int, start: int = 0) -> list[int]:
    return [(start + 7 * place) % 50 for place in range(length)]


def running(core: FakeCore) -> list[str]:
    return [sequence.id for sequence in core.scheduler.running]


def test_an_interactive_request_takes_the_seat_of_the_newest_offline_one_which_then_goes_on_exactly() -> None:
    core = make_fake_core(max_batch=2)
    bulk = [admit(prompt_of(9, n), max_tokens=12, is_offline=True, id=f"bulk-{n}") for n in range(2)]
    core.driver.step(*bulk)
    core.driver.step()
    person = admit(prompt_of(5, 3), max_tokens=4, id="person")
    core.driver.step(person)
    assert running(core) == ["bulk-0", "person"]
    core.driver.run()
    for request in [*bulk, person]:
        assert core.driver.ids(request) == expected(request.prompt_ids, request.max_tokens)
    assert core.driver.loop.stats().preemptions == 1


def test_an_interactive_request_that_came_later_starts_before_waiting_offline_ones() -> None:
    core = make_fake_core(max_batch=1)
    core.driver.step(admit(prompt_of(3), max_tokens=3, id="first"))
    core.driver.step(admit(prompt_of(3, 1), max_tokens=2, is_offline=True, id="bulk"))
    assert core.driver.loop.stats().waiting_offline == 1
    core.driver.run(admit(prompt_of(3, 2), max_tokens=2, id="person"))
    assert list(core.driver.finished) == ["first", "person", "bulk"]


def test_fewer_run_beside_an_interactive_request_and_offline_work_alone_fills_the_batch() -> None:
    core = make_fake_core(max_batch=4, interactive_batch=2)
    bulk = [admit(prompt_of(5, n), max_tokens=30, is_offline=True) for n in range(5)]
    core.driver.step(*bulk)
    assert len(core.scheduler.running) == 4
    person = admit(prompt_of(5, 9), max_tokens=5, id="person")
    core.driver.step(person)
    while "person" not in core.driver.finished:
        assert len(core.scheduler.running) == 2
        core.driver.step()
    core.driver.step()
    assert len(core.scheduler.running) == 4
    core.driver.run()
    assert core.driver.ids(person) == expected(person.prompt_ids, 5)
    for request in bulk:
        assert core.driver.ids(request) == expected(request.prompt_ids, 30)


def test_offline_work_gives_its_blocks_to_people() -> None:
    core = make_fake_core(num_blocks=16, max_batch=4)
    core.driver.step(admit(prompt_of(50), max_tokens=10, is_offline=True, id="bulk"))
    core.driver.step(admit(prompt_of(40, 3), max_tokens=4, id="person"))
    assert running(core) == ["person"]
    core.driver.run()
    assert list(core.driver.finished) == ["person", "bulk"]


def test_who_gave_way_in_a_step_does_not_start_again_in_it() -> None:
    """Killed by looking at the queue as it is: the small one would have its next token and its history in one batch,
    and would pass the big one, which came before it."""
    core = make_fake_core(num_blocks=16, step_tokens=64)
    big = admit(prompt_of(29), max_tokens=6, is_offline=True, id="big")
    small = admit(prompt_of(5, 9), max_tokens=10, is_offline=True, id="small")
    core.driver.step(big, small)
    core.driver.step(admit(prompt_of(36, 3), max_tokens=4, id="person"))
    assert [chunk.sequence.id for chunk in core.runner.batches[-1]] == ["person"]
    assert {sequence.id for sequence in core.scheduler.waiting} == {"small", "big"}
    core.driver.run()
    for request in (big, small):
        assert core.driver.ids(request) == expected(request.prompt_ids, request.max_tokens)


def test_offline_work_is_served_while_people_never_stop_coming() -> None:
    core = make_fake_core(max_batch=1, ageing_s=5.0)
    core.driver.step(admit(prompt_of(3), max_tokens=2, is_offline=True, id="bulk"))
    for number in range(200):
        core.driver.step(admit(prompt_of(3, number % 50), max_tokens=2, id=f"person-{number}"))
        if "bulk" in core.driver.finished:
            break
    assert core.driver.finished["bulk"].reason == "length"
    waited = core.driver.finished["bulk"].queue_s
    assert OFFLINE_PATIENCE_LEVELS * 5.0 <= waited <= OFFLINE_PATIENCE_LEVELS * 5.0 + 20


def test_who_is_promoted_starts_first_though_memory_is_as_full_as_it_was() -> None:
    """Killed by an order that is kept until blocks come free: the person before it needs more than there are."""
    core = make_fake_core(num_blocks=16, max_batch=4, ageing_s=1.0)
    core.driver.step(admit(prompt_of(30), max_tokens=34, id="running"))
    core.driver.step(
        admit(prompt_of(40, 3), max_tokens=1, id="person"),
        admit(prompt_of(9, 5), max_tokens=1, is_offline=True, id="bulk"),
    )
    core.driver.run()
    assert list(core.driver.finished) == ["bulk", "running", "person"]


def test_one_offline_sequence_at_a_time_is_promoted_however_many_are_old() -> None:
    classes = Classes(patience_s=60.0)
    first, second = (Sequence(admit([1], is_offline=True), n, 0.0) for n in (1, 2))
    assert not classes.promote([first, second], 59.0)
    assert classes.of(first) is LatencyClass.OFFLINE
    assert classes.promote([first, second], 60.0)
    assert not classes.promote([first, second], 1000.0)
    assert [classes.of(first), classes.of(second)] == [LatencyClass.INTERACTIVE, LatencyClass.OFFLINE]
    classes.leave(first)
    classes.promote([second], 119.0)
    assert classes.of(second) is LatencyClass.OFFLINE
    classes.promote([second], 120.0)
    assert classes.of(second) is LatencyClass.INTERACTIVE


def test_background_work_stays_below_offline_work() -> None:
    core = make_fake_core(step_tokens=16)
    core.driver.step(admit(prompt_of(60), max_tokens=0, is_background=True, id="warm"))
    core.driver.run(admit(prompt_of(9, 3), max_tokens=5, is_offline=True, id="bulk"))
    assert list(core.driver.finished) == ["bulk", "warm"]
