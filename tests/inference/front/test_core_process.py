"""When a core process is ended from outside; here it is only a counter of kills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inference.front.core_process import CoreProcess
from inference.front.launch import CoreCommand
from inference.front.spawner import Spawner


@dataclass
class FakeProcess:
    pid: int = 1
    num_kills: int = 0

    def kill(self) -> None:
        self.num_kills += 1


@dataclass
class FakeListener:
    is_busy: bool = False
    complaint_text: str = ""

    def has_pending_work(self) -> bool:
        return self.is_busy

    def complaint(self) -> str:
        return self.complaint_text


def make_core(listener: FakeListener) -> tuple[CoreProcess, FakeProcess, list[float]]:
    time, process = [0.0], FakeProcess()
    unwatched: Any = listener
    core = CoreProcess(
        CoreCommand([], {}), unwatched, step_timeout_s=10, clock=lambda: time[0], spawner=Spawner()
    )
    core._process = process  # type: ignore[assignment]
    core.is_ready = True
    return core, process, time


def test_a_complaint_ends_the_core_once() -> None:
    listener = FakeListener()
    core, process, _ = make_core(listener)
    core.check_progress()
    assert process.num_kills == 0
    listener.complaint_text = "3 probes in a row failed"
    core.check_progress()
    core.check_progress()
    assert process.num_kills == 1


def test_silence_ends_a_core_only_while_work_is_pending() -> None:
    listener = FakeListener()
    core, process, time = make_core(listener)
    for _ in range(5):
        time[0] += 9
        core.check_progress()
    listener.is_busy = True
    core.check_progress()
    time[0] += 9
    core.check_progress()
    assert process.num_kills == 0
    time[0] += 2
    core.check_progress()
    assert process.num_kills == 1


def test_nothing_is_held_against_a_core_that_is_not_there_yet() -> None:
    core, process, _ = make_core(FakeListener(complaint_text="no token"))
    core.is_ready = False
    core.check_progress()
    assert process.num_kills == 0
