"""When a process is started again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatsite.launcher.restart import LONGEST_DELAY_S, MOST_RESTARTS_IN_WINDOW, WINDOW_S, RestartPolicy


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_delay_doubles_up_to_a_minute_while_a_process_never_becomes_ready() -> None:
    clock = Clock()
    policy = RestartPolicy(clock)
    delays = []
    for _ in range(8):
        delays.append(policy.delay_s(was_ready=False))
        clock.now += delays[-1]
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_death_after_readiness_starts_the_back_off_afresh() -> None:
    clock = Clock()
    policy = RestartPolicy(clock)
    for _ in range(4):
        clock.now += policy.delay_s(was_ready=False)
    assert policy.delay_s(was_ready=True) == 1


def test_a_configuration_error_waits_a_whole_minute() -> None:
    assert RestartPolicy(Clock()).delay_s(was_ready=False, is_misconfigured=True) == LONGEST_DELAY_S


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 30)), min_size=10, max_size=60))
def test_never_more_restarts_in_a_minute_than_allowed(lives: list[tuple[bool, float]]) -> None:
    clock = Clock()
    policy = RestartPolicy(clock)
    restarts = []
    for was_ready, lived_s in lives:
        clock.now += lived_s
        clock.now += policy.delay_s(was_ready=was_ready)
        restarts.append(clock.now)
    for first, later in zip(restarts, restarts[MOST_RESTARTS_IN_WINDOW:], strict=False):
        assert later - first >= WINDOW_S - 1e-6
