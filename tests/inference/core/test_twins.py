"""A beginning that is being read by one sequence is read once."""

from __future__ import annotations

import pytest

from inference.core.messages import Cancel
from inference.core.sequence import Sequence
from inference.core.twins import is_being_computed
from tests.inference.core.driver import admit
from tests.inference.core.fakes import expected, make_fake_core


def prompt_of(length: int, start: int = 0) -> list[int]:
    return [(start + 7 * place) % 50 for place in range(length)]


def test_n_choices_of_one_prompt_are_prefilled_once() -> None:
    core = make_fake_core(num_blocks=128, step_tokens=16)
    choices = [admit(prompt_of(41), max_tokens=5) for _ in range(4)]
    core.driver.run(*choices)
    assert core.driver.loop.stats().prefilled_tokens == 41 + 3  # the last token is always computed
    for choice in choices:
        assert core.driver.ids(choice) == expected(choice.prompt_ids, 5)


def test_equal_system_prompts_of_one_user_are_prefilled_once_even_in_one_step() -> None:
    core = make_fake_core(num_blocks=128, step_tokens=500)
    system = prompt_of(40)
    chats = [admit([*system, *prompt_of(7, start)], max_tokens=3) for start in (11, 12, 13)]
    core.driver.run(*chats)
    assert core.driver.loop.stats().prefilled_tokens == 40 + 3 * 7
    for chat in chats:
        assert core.driver.ids(chat) == expected(chat.prompt_ids, 3)


def test_equal_prompts_of_two_users_are_not_waited_for() -> None:
    core = make_fake_core(num_blocks=128, step_tokens=16)
    core.driver.step(*(admit(prompt_of(41), salt=salt) for salt in (b"one", b"two")))
    core.driver.run()
    assert core.driver.loop.stats().prefilled_tokens == 2 * 41


def test_others_pass_a_sequence_that_waits_for_its_twin() -> None:
    core = make_fake_core(num_blocks=128, step_tokens=16)
    first, twin = (admit(prompt_of(60), max_tokens=2, id=name) for name in ("first", "twin"))
    core.driver.step(first, twin, admit(prompt_of(6, 3), max_tokens=30, id="passer"))
    running = set()
    for _ in range(4):
        core.driver.step()
        running |= {sequence.id for sequence in core.scheduler.running}
    assert "passer" in running
    core.driver.run()
    assert core.driver.end(twin).prefilled_tokens == 4


@pytest.mark.parametrize("how", ["cancelled", "failed", "broken"])
def test_when_the_first_ends_early_the_next_one_reads_on_from_what_is_there(how: str) -> None:
    core = make_fake_core(num_blocks=128, step_tokens=16)
    first, second, third = (admit(prompt_of(60), max_tokens=4) for _ in range(3))
    core.driver.step(first, second, third)
    core.driver.step()
    if how == "cancelled":
        core.driver.step(Cancel(first.id, "cancelled"))
    else:
        (core.runner.failing if how == "failed" else core.runner.broken).add(first.id)
    core.driver.run()
    for request in (second, third):
        assert core.driver.ids(request) == expected(request.prompt_ids, 4)
    assert core.driver.end(third).prefilled_tokens == 4


def test_when_the_first_is_preempted_nobody_waits_for_it() -> None:
    core = make_fake_core(num_blocks=24, max_batch=4, step_tokens=8)
    bulk = [admit(prompt_of(60), max_tokens=2, is_offline=True) for _ in range(2)]
    core.driver.step(*bulk)
    core.driver.step(person := admit(prompt_of(60, 3), max_tokens=2))
    assert [sequence.id for sequence in core.scheduler.running] == [person.id]
    core.driver.run()
    for request in [*bulk, person]:
        assert core.driver.ids(request) == expected(request.prompt_ids, 2)


@pytest.mark.parametrize("slow", ["background", "offline"])
def test_a_person_does_not_wait_for_work_of_a_lower_class_that_may_stand_still(slow: str) -> None:
    """Killed by waiting for any running sequence: paused background work would never get on."""
    core = make_fake_core(num_blocks=128, step_tokens=16)
    lower = admit(
        prompt_of(60), max_tokens=0, is_background=slow == "background", is_offline=slow == "offline"
    )
    core.driver.step(lower)
    core.driver.step(person := admit(prompt_of(60), max_tokens=3))
    assert person.id in {sequence.id for sequence in core.scheduler.running}
    core.driver.run()
    assert core.driver.ids(person) == expected(person.prompt_ids, 3)


def test_nobody_waits_for_a_sequence_that_decodes() -> None:
    """A collision keeps its blocks from being published: the second computes for itself at once."""
    core = make_fake_core(num_blocks=128, step_tokens=64)
    core.driver.step(admit(prompt_of(30), max_tokens=40))
    core.kv.clear()
    core.driver.step(second := admit(prompt_of(30), max_tokens=1))
    assert second.id in core.driver.finished


def test_only_a_whole_block_more_than_is_cached_is_waited_for() -> None:
    core = make_fake_core(num_blocks=128, step_tokens=16)
    core.driver.step(admit(prompt_of(60), max_tokens=1))
    longer = {size: Sequence(admit(prompt_of(size)), size, 0.0) for size in (17, 20, 21)}
    held = {size for size, one in longer.items() if is_being_computed(one, core.scheduler.running, core.kv)}
    stranger = Sequence(admit(prompt_of(21), salt=b"stranger"), 1, 0.0)
    assert not is_being_computed(stranger, core.scheduler.running, core.kv)
    assert held == {21}  # 16 are cached, and of 20 the last must be computed anyway
