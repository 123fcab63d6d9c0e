"""Starting in order, restarting, stopping in reverse: with children that do nothing."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from chatsite.launcher.errors import EX_CONFIG, Misconfigured, StartFailed
from chatsite.launcher.steps import Job, Service, check_plan
from chatsite.launcher.supervisor import Supervisor
from tests.patience import PATIENCE_S

from .processes import IGNORES_TERM, READY, STAYS, python, service

Supervise = Callable[..., Supervisor]

APPENDS = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + '\\n')"
APPENDS_AT_TERM = (
    "import signal, sys\n"
    "def end(*_):\n"
    "    open(sys.argv[1], 'a').write(sys.argv[2] + '\\n')\n"
    "    sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, end)\n" + STAYS
)


class RecordedSleep:
    """Stands for the wait before a restart: takes no time, remembers how long it should have been."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    async def __call__(self, delay_s: float) -> None:
        self.delays.append(delay_s)


def pid_of(output: io.StringIO, name: str) -> int:
    """The process id that the newest life of `name` printed after the word ready."""
    return int(re.findall(rf"^{name}\s+\| ready (\d+)$", output.getvalue(), re.MULTILINE)[-1])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


def telling(name: str, after: tuple[str, ...] = (), **options: object) -> Service:
    """A service that prints its process id when it is ready."""
    script = "import os, signal; print('ready', os.getpid(), flush=True); signal.pause()"
    return service(name, script, after, **options)


async def test_a_step_starts_only_when_those_it_needs_are_ready(supervise: Supervise, tmp_path: Path) -> None:
    log = str(tmp_path / "order")
    plan = (
        Job("first", python(APPENDS, log, "first")),
        Job("second", python(APPENDS, log, "second"), after=("first",)),
        Job("third", python(APPENDS, log, "third"), after=("second",)),
    )
    await supervise(plan).start()
    assert Path(log).read_text().split() == ["first", "second", "third"]


async def test_services_stop_in_the_reverse_of_their_order(supervise: Supervise, tmp_path: Path) -> None:
    log = str(tmp_path / "order")
    names = ("database", "engine", "web")
    plan = tuple(
        Service(name, python(APPENDS_AT_TERM, log, name), names[:number], ready_line=READY)
        for number, name in enumerate(names)
    )
    supervisor = supervise(plan)
    await supervisor.start()
    await supervisor.stop()
    assert Path(log).read_text().split() == ["web", "engine", "database"]


async def test_a_killed_service_is_started_again(supervise: Supervise, output: io.StringIO) -> None:
    sleep = RecordedSleep()
    await supervise((telling("web"), telling("other")), sleep=sleep).start()
    first, other = pid_of(output, "web"), pid_of(output, "other")
    os.kill(first, signal.SIGKILL)
    await until(lambda: pid_of(output, "web") != first)
    assert sleep.delays == [1]
    assert pid_of(output, "other") == other
    assert "web was ended by signal 9; starting it again in 1 s" in output.getvalue()


async def test_preparation_runs_before_every_start(supervise: Supervise, output: io.StringIO) -> None:
    prepared = []

    async def prepare(say: Callable[[str], None]) -> None:
        prepared.append("prepared")

    await supervise((telling("web", prepare=prepare),), sleep=RecordedSleep()).start()
    first = pid_of(output, "web")
    os.kill(first, signal.SIGKILL)
    await until(lambda: pid_of(output, "web") != first)
    assert len(prepared) == 2


async def test_a_service_that_hangs_is_ended_and_started_again(
    supervise: Supervise, output: io.StringIO
) -> None:
    answers = iter([True, True, False, True, False, False, False, False, False])

    async def alive() -> bool:
        return next(answers, True)

    await supervise((telling("web", alive=alive, alive_every_s=0.01),), sleep=RecordedSleep()).start()
    first = pid_of(output, "web")
    await until(lambda: pid_of(output, "web") != first)
    assert next(answers, None) is None
    assert "web does not answer any more" in output.getvalue()


async def test_a_failing_job_fails_the_start_with_its_last_line(supervise: Supervise) -> None:
    plan = (
        Job("migrate", python("print('no such table'); raise SystemExit(3)")),
        telling("web", ("migrate",)),
    )
    with pytest.raises(StartFailed, match="migrate ended with status 3: no such table"):
        await supervise(plan).start()


async def test_a_configuration_error_is_not_tried_again(supervise: Supervise) -> None:
    sleep = RecordedSleep()
    script = f"print('MODEL=nowhere is not a folder'); raise SystemExit({EX_CONFIG})"
    with pytest.raises(Misconfigured, match="MODEL=nowhere is not a folder"):
        await supervise((service("engine", script),), sleep=sleep).start()
    assert sleep.delays == []


async def test_a_service_that_never_becomes_ready_fails_the_start(supervise: Supervise) -> None:
    sleep = RecordedSleep()
    with pytest.raises(StartFailed, match="boom"):
        await supervise((service("web", "raise SystemExit('boom')"),), sleep=sleep).start()
    assert sleep.delays == [1, 2]


async def test_a_service_that_takes_too_long_is_ended(supervise: Supervise, output: io.StringIO) -> None:
    silent = Service("web", python("import signal; signal.pause()"), ready_line=READY, start_timeout_s=0.0)
    with pytest.raises(StartFailed):
        await supervise((silent,), sleep=RecordedSleep()).start()
    assert "web was not ready within 0 s" in output.getvalue()


async def test_a_stop_in_the_middle_of_a_start_leaves_nothing(
    supervise: Supervise, output: io.StringIO
) -> None:
    endless = Job(
        "models", python("import os, signal; print('ready', os.getpid(), flush=True); signal.pause()")
    )
    supervisor = supervise((endless, telling("web", ("models",))))
    starting = asyncio.create_task(supervisor.start())
    await until(lambda: "ready" in output.getvalue())
    starting.cancel()
    await asyncio.wait({starting})
    await supervisor.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid_of(output, "models"), 0)


async def test_hurry_ends_what_ignores_its_signal(supervise: Supervise) -> None:
    supervisor = supervise((service("stubborn", IGNORES_TERM, grace_s=3600.0),))
    await supervisor.start()
    supervisor.hurry.set()
    async with asyncio.timeout(PATIENCE_S):
        await supervisor.stop()


def test_a_plan_may_only_look_back() -> None:
    with pytest.raises(AssertionError, match="web needs"):
        check_plan((service("web", after=("engine",)), service("engine")))
