"""The circuit breaker, with a clock moved by hand."""

from __future__ import annotations

from semcache.breaker import Breaker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def broken(clock: Clock, failures: int = 5) -> Breaker:
    breaker = Breaker(clock=clock)
    for _ in range(failures):
        breaker.failed()
    return breaker


def test_four_failures_are_borne_and_five_are_not():
    assert broken(Clock(), 4).allows()
    assert not broken(Clock(), 5).allows()


def test_failures_far_apart_do_not_add_up():
    clock = Clock()
    breaker = Breaker(clock=clock)
    for _ in range(10):
        breaker.failed()
        clock.now += 2.6
    assert breaker.allows()


def test_after_the_rest_one_caller_tries_and_its_success_closes():
    clock = Clock()
    breaker = broken(clock)
    clock.now = 10.0
    assert [breaker.allows(), breaker.allows()] == [True, False]
    breaker.succeeded()
    assert breaker.allows() and breaker.allows()


def test_a_failed_try_rests_again_at_once():
    clock = Clock()
    breaker = broken(clock)
    clock.now = 10.0
    assert breaker.allows()
    breaker.failed()
    clock.now = 19.9
    assert not breaker.allows()
    clock.now = 20.0
    assert breaker.allows()


def test_a_success_forgets_earlier_failures():
    breaker = broken(Clock(), 4)
    breaker.succeeded()
    breaker.failed()
    assert breaker.allows()
