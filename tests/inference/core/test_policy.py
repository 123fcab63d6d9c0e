"""Who of one user's requests starts next."""

from __future__ import annotations

import pytest

from inference.core.policy import MAX_LOOKUPS, AgeingPriority, FirstCome, LongestPrefix, policy_of
from inference.core.sequence import Sequence
from tests.inference.core.driver import admit
from tests.inference.core.fakes import make_fake_core


def prompt_of(length: int, start: int = 0) -> list[int]:
    return [(start + 7 * place) % 50 for place in range(length)]


def ids(sequences: list[Sequence]) -> list[int]:
    return [sequence.arrival for sequence in sequences]


def test_first_come_ignores_priorities() -> None:
    sequences = [Sequence(admit([1], priority=p), n, 0.0) for n, p in ((2, -5), (1, 0), (3, -9))]
    assert ids(FirstCome().order(sequences, 100.0)) == [1, 2, 3]


def test_the_longest_cached_prefix_of_the_same_user_starts_first() -> None:
    core = make_fake_core(max_batch=1, policy="lpm", ageing_s=10_000.0)
    known = prompt_of(24)
    core.driver.run(admit(known, max_tokens=1, salt=b"me"))
    core.driver.step(admit([1, 2], max_tokens=12, salt=b"me", id="running"))
    core.driver.step(
        admit([*prompt_of(12, 30), 5], max_tokens=1, salt=b"me", id="nothing cached"),
        admit([*known[:12], 3], max_tokens=1, salt=b"me", id="half cached"),
        admit([*known, 4], max_tokens=1, salt=b"me", id="all cached"),
    )
    core.driver.run()
    assert list(core.driver.finished)[2:] == ["all cached", "half cached", "nothing cached"]


def test_what_another_user_has_cached_moves_nobody_forward() -> None:
    core = make_fake_core(max_batch=1, policy="lpm", ageing_s=10_000.0, fair_shares=False)
    core.driver.run(admit(prompt_of(24), max_tokens=1, salt=b"other"))
    core.driver.step(admit([1, 2], max_tokens=12, salt=b"me", id="running"))
    core.driver.step(
        admit(prompt_of(13, 30), max_tokens=1, salt=b"me", id="first"),
        admit(prompt_of(24), max_tokens=1, salt=b"me", id="second"),
    )
    core.driver.run()
    assert list(core.driver.finished)[-2:] == ["first", "second"]


def test_a_request_without_a_cached_prefix_is_overtaken_for_a_bounded_time() -> None:
    core = make_fake_core(max_batch=1, policy="lpm", ageing_s=60.0)
    known = prompt_of(24)
    core.driver.run(admit(known, max_tokens=1))
    core.driver.step(
        admit([*known, 1], max_tokens=1, id="running"), admit(prompt_of(9, 30), max_tokens=1, id="cold")
    )
    for number in range(100):
        core.driver.step(admit([*known, number % 50], max_tokens=2))
        if "cold" in core.driver.finished:
            break
    assert 40.0 < core.driver.finished["cold"].queue_s < 80.0


def test_only_so_many_prompts_are_looked_up() -> None:
    core = make_fake_core()
    sequences = [Sequence(admit(prompt_of(9, n)), n, 0.0) for n in range(MAX_LOOKUPS + 20)]
    looked_up: list[Sequence] = []
    core.kv.num_reusable = lambda sequence: looked_up.append(sequence) or sequence.arrival  # type: ignore[method-assign, func-returns-value]
    found = ids(LongestPrefix(core.kv, 10.0).order(sequences, 1.0))
    assert len(looked_up) == MAX_LOOKUPS
    assert found == [*range(MAX_LOOKUPS - 1, -1, -1), *range(MAX_LOOKUPS, MAX_LOOKUPS + 20)]


@pytest.mark.parametrize("is_offline", [False, True])
def test_no_prompt_is_looked_up_again_while_neither_memory_nor_a_seat_has_come_free(is_offline: bool) -> None:
    """Killed by an order that is made anew in every step: a hash for each block of 32 prompts, for nothing."""
    core = make_fake_core(num_blocks=16, max_batch=2 if is_offline else 8, policy="lpm", ageing_s=10_000.0)
    running = [admit(prompt_of(20, n), max_tokens=6, is_offline=is_offline) for n in range(2)]
    core.driver.step(*running)
    core.driver.step()
    looked_up: list[str] = []
    num_reusable = core.kv.num_reusable
    core.kv.num_reusable = lambda sequence: looked_up.append(sequence.id) or num_reusable(sequence)  # type: ignore[method-assign, func-returns-value]
    waiting = [admit(prompt_of(40, n), max_tokens=1, is_offline=is_offline) for n in range(3, 6)]
    core.driver.step(*waiting)
    looked_up.clear()
    core.driver.step()
    assert looked_up == []
    core.driver.step(newcomer := admit(prompt_of(41, 9), max_tokens=1, is_offline=is_offline))
    assert newcomer.id in looked_up
    core.driver.run()
    assert {end.reason for end in core.driver.finished.values()} == {"length"}


def test_an_old_request_of_low_priority_overtakes_new_ones_of_high_priority() -> None:
    old = Sequence(admit([1], priority=2), 1, 0.0)
    young = Sequence(admit([1], priority=0), 2, 25.0)
    policy = AgeingPriority(ageing_s=10.0)
    assert ids(policy.order([old, young], 25.0)) == [1, 2]
    assert ids(policy.order([old, Sequence(admit([1], priority=-1), 3, 25.0)], 25.0)) == [3, 1]
    assert ids(policy.order([Sequence(admit([1], priority=1), 4, 19.0), young], 25.0)) == [2, 4]


@pytest.mark.parametrize(
    ("name", "kind"), [("fcfs", FirstCome), ("lpm", LongestPrefix), ("priority", AgeingPriority)]
)
def test_the_setting_names_the_policy(name: str, kind: type) -> None:
    assert isinstance(policy_of(name, make_fake_core().kv, 10.0), kind)
