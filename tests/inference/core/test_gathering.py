"""Waiting for company at idle, on a fake clock and over a fake pipe."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from inference.core.__main__ import _run
from inference.core.gathering import Gathering
from inference.core.messages import Cancel, Command, CoreReady, EmbedTexts, Forget, StepPack
from inference.core.pipe import PipeClosed
from inference.core.sequence import Sequence
from inference.core.startup import Core
from tests.inference.core.driver import admit
from tests.inference.core.fakes import make_fake_core

READY = CoreReady("", 1, "", "", 1, 1, 1)


class FakePipe:
    """Commands by arrival time; the clock moves to the next of them, or by as long as the core is willing to wait."""

    def __init__(self, arrivals: dict[float, list[Command]]) -> None:
        self.now = 0.0
        self.sent: list[tuple[float, StepPack]] = []
        self._arrivals = dict(sorted(arrivals.items()))

    def receive(self, timeout_s: float | None) -> list[Command]:
        coming = next(iter(self._arrivals), None)
        if coming is None and timeout_s is None:
            raise PipeClosed("nothing comes any more")
        ends_at = float("inf") if timeout_s is None else self.now + timeout_s
        if coming is None or coming > ends_at:
            self.now = ends_at
            return []
        self.now = max(self.now, coming)
        return self._arrivals.pop(coming)

    def send(self, pack: StepPack) -> None:
        self.sent.append((self.now, pack))


def started_at(
    arrivals: dict[float, list[Command]], gathering: Gathering, max_batch: int = 8
) -> dict[str, float]:
    """When each request had its only token."""
    pipe = run(arrivals, gathering, max_batch)
    return {token.id: at for at, pack in pipe.sent for token in pack.tokens}


def run(arrivals: dict[float, list[Command]], gathering: Gathering, max_batch: int = 8) -> FakePipe:
    pipe = FakePipe(arrivals)
    core = make_fake_core(
        max_batch=max_batch,
        gathering=gathering,
        clock=lambda: pipe.now,
        encode=lambda texts: np.ones((len(texts), 2), dtype=np.float32),
    )
    with pytest.raises(PipeClosed):
        _run(Core(core.driver.loop, READY), pipe)  # type: ignore[arg-type]
    return pipe


def one(name: str) -> Command:
    return admit([1, 2, 3], max_tokens=1, id=name, salt=name.encode())


def test_by_default_nobody_waits() -> None:
    assert started_at({5.0: [one("a")], 5.1: [one("b")]}, Gathering()) == {"a": 5.0, "b": 5.1}


def test_every_arrival_starts_the_window_again() -> None:
    arrivals = {1.0: [one("a")], 1.08: [one("b")], 1.16: [one("c")], 1.5: [one("late")]}
    found = started_at(arrivals, Gathering(wait_s=0.1, max_delay_s=9.0))
    assert found == pytest.approx({"a": 1.26, "b": 1.26, "c": 1.26, "late": 1.6})


def test_no_request_is_held_longer_than_the_longest_delay() -> None:
    arrivals: dict[float, list[Command]] = {number * 0.05: [one(f"{number}")] for number in range(9)}
    found = started_at(arrivals, Gathering(wait_s=0.1, max_delay_s=0.22), max_batch=100)
    assert found["0"] == pytest.approx(0.22)
    assert all(at - 0.05 * int(name) < 0.2201 for name, at in found.items())


def test_a_full_batch_starts_at_once() -> None:
    arrivals = {1.0: [one("a")], 1.02: [one("b"), one("c")]}
    assert set(started_at(arrivals, Gathering(0.1, 9.0), max_batch=3).values()) == {1.02}


def test_commands_of_other_kinds_are_not_held() -> None:
    arrivals: dict[float, list[Command]] = {
        1.0: [one("a"), one("b")],
        1.03: [Cancel("a", "cancelled")],
        1.05: [EmbedTexts("texts", [[1, 2]]), Forget(b"c")],
    }
    pipe = run(arrivals, Gathering(0.1, 9.0))
    assert next((at, end.id) for at, pack in pipe.sent for end in pack.finished) == (1.03, "a")
    assert [at for at, pack in pipe.sent for _ in pack.embedded] == [1.05]
    assert [at for at, pack in pipe.sent for _ in pack.tokens] == pytest.approx([1.1])


def test_the_loop_still_turns_every_second_while_it_waits() -> None:
    pipe = run({0.0: [one("a")]}, Gathering(wait_s=3.5, max_delay_s=60.0))
    assert [at for at, _ in pipe.sent][:4] == pytest.approx([0.0, 1.0, 2.0, 3.0])
    assert [at for at, pack in pipe.sent if pack.tokens] == pytest.approx([3.5])


def test_a_busy_engine_takes_newcomers_at_once() -> None:
    core = make_fake_core(gathering=Gathering(100.0, 1000.0), clock=itertools.count().__next__, max_batch=2)
    core.driver.step(admit([1], max_tokens=20), admit([2], max_tokens=2))
    core.driver.step()
    core.driver.step(newcomer := admit([3], max_tokens=1))
    assert newcomer.id in core.driver.finished


def test_what_waited_longer_than_the_delay_when_the_batch_before_ended_starts_at_once() -> None:
    old = Sequence(admit([1]), 1, 10.0)
    assert Gathering(0.1, 0.2).left_s([old], 8, 10.25) == 0.0
    assert Gathering(0.1, 0.2).left_s([], 8, 10.25) == 0.0
