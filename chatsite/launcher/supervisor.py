"""Carries out a plan: starts each step when those it needs are ready, restarts what dies, stops in reverse order.

Knows plans, not what is in them.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from functools import partial

from chatsite.launcher.console import Console
from chatsite.launcher.errors import EX_CONFIG, LauncherError, Misconfigured, StartFailed
from chatsite.launcher.process import Child
from chatsite.launcher.restart import RestartPolicy
from chatsite.launcher.steps import Job, Plan, Service, Step, check_plan

PROBE_EVERY_S = 0.1
REPORT_EVERY_S = 10.0
STARTS_BEFORE_GIVING_UP = 3
JOB_GRACE_S = 5.0
MISSES_BEFORE_KILL = 5


class Supervisor:
    """One run of one plan. `start()`, then `watch()`, and `stop()` in any case."""

    def __init__(
        self,
        plan: Plan,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        check_plan(plan)
        self._plan = plan
        self._console = console
        self._clock = clock
        self._sleep = sleep
        self._children: dict[str, Child] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ready = {step.name: asyncio.Event() for step in plan}
        self._began_at: dict[str, float] = {}
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.hurry = asyncio.Event()

    async def start(self) -> None:
        """Return when every step is ready; raise what stopped the first step that failed."""
        self._tasks = {step.name: asyncio.create_task(self._carry_out(step)) for step in self._plan}
        reporting = asyncio.create_task(self._report_waiting())
        all_ready = asyncio.create_task(self._all_ready())
        try:
            waits: set[asyncio.Future[None]] = {all_ready, self._failure}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
        finally:
            reporting.cancel()
            all_ready.cancel()

    async def watch(self) -> None:
        """Never returns while the services can be kept running; raises what went wrong otherwise."""
        await self._failure

    async def stop(self) -> None:
        """Stop every step, the last of the plan first, each with its grace period. `hurry` cuts the graces short."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for step in reversed(self._plan):
            child = self._children.pop(step.name, None)
            if child is None:
                continue
            if isinstance(step, Job):
                await child.stop(signal.SIGTERM, JOB_GRACE_S, self.hurry)
            else:
                self._console.step(f"stopping {step.name}")
                await child.stop(step.stop_signal, step.grace_s, self.hurry)
        if not self._failure.cancel() and not self._failure.cancelled():
            self._failure.exception()  # a failure that came after the order to stop concerns nobody any more

    async def _all_ready(self) -> None:
        for ready in self._ready.values():
            await ready.wait()

    async def _carry_out(self, step: Step) -> None:
        """One step from waiting for what it needs to its end; its failure becomes the failure of the run."""
        try:
            for name in step.after:
                await self._ready[name].wait()
            if isinstance(step, Job):
                await self._run_job(step)
            else:
                await self._keep_running(step)
        except Exception as error:
            if not self._failure.done():
                self._failure.set_exception(error)

    async def _run_job(self, job: Job) -> None:
        self._began_at[job.name] = self._clock()
        child = await self._spawn(job)
        status = await child.wait()
        del self._children[job.name]
        if status != 0:
            raise _failure_of(job.name, status, child.last_line)
        self._mark_ready(job.name, "done")

    async def _keep_running(self, service: Service) -> None:
        policy = RestartPolicy(self._clock)
        num_starts = 0
        while True:
            num_starts += 1
            was_ready, status, last_line = await self._run_once(service)
            failure = _failure_of(service.name, status, last_line)
            is_misconfigured = isinstance(failure, Misconfigured)
            never_ready = not self._ready[service.name].is_set()
            if never_ready and (is_misconfigured or num_starts == STARTS_BEFORE_GIVING_UP):
                raise failure
            delay_s = policy.delay_s(was_ready=was_ready, is_misconfigured=is_misconfigured)
            self._console.error(f"{failure}; starting it again in {delay_s:.0f} s")
            await self._sleep(delay_s)

    async def _run_once(self, service: Service) -> tuple[bool, int, str]:
        """One life of a service: (was it ready, exit status, last line)."""
        self._began_at[service.name] = self._clock()
        if service.prepare is not None:
            await service.prepare(partial(self._console.child_line, service.name))
        child = await self._spawn(service)
        is_ready = asyncio.Event()
        guarding = asyncio.create_task(self._guard(service, child, is_ready))
        ending = asyncio.create_task(child.wait())
        ending.add_done_callback(lambda _: guarding.cancel())
        try:
            await asyncio.wait({ending, guarding}, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            ending.cancel()
            guarding.cancel()
        if not guarding.cancelled():
            guarding.result()
        # What it left in its process group must not hold the sockets of the next start.
        child.kill_group()
        del self._children[service.name]
        return is_ready.is_set(), ending.result(), child.last_line

    async def _guard(self, service: Service, child: Child, is_ready: asyncio.Event) -> None:
        """Wait until the service is ready, then watch that it lives; kill it where either fails."""
        deadline = self._clock() + service.start_timeout_s
        while not await _is_ready(service, child):
            if self._clock() > deadline:
                self._console.error(f"{service.name} was not ready within {service.start_timeout_s:.0f} s")
                child.kill_group()
                return
            await asyncio.sleep(PROBE_EVERY_S)
        is_ready.set()
        self._mark_ready(service.name, "ready")
        num_misses = 0
        while service.alive is not None and num_misses < MISSES_BEFORE_KILL:
            await asyncio.sleep(service.alive_every_s)
            num_misses = 0 if await service.alive() else num_misses + 1
        if num_misses:
            self._console.error(f"{service.name} does not answer any more")
            child.kill_group()

    async def _spawn(self, step: Step) -> Child:
        child = await Child.spawn(step.command, partial(self._console.child_line, step.name))
        self._children[step.name] = child
        return child

    def _mark_ready(self, name: str, word: str) -> None:
        self._console.step(f"{name} {word} after {self._clock() - self._began_at[name]:.1f} s")
        self._ready[name].set()

    async def _report_waiting(self) -> None:
        """Say every few seconds what the start still waits for."""
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            waits = [
                f"{name} ({self._clock() - self._began_at[name]:.0f} s)"
                for name, ready in self._ready.items()
                if name in self._began_at and not ready.is_set()
            ]
            if waits:
                self._console.step("still working on: " + ", ".join(waits))


async def _is_ready(service: Service, child: Child) -> bool:
    if service.ready_line is not None:
        return child.has_printed(service.ready_line)
    return service.probe is None or await service.probe()


def _failure_of(name: str, status: int, last_line: str) -> LauncherError:
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    said = f": {last_line}" if last_line else ""
    if status == EX_CONFIG:
        return Misconfigured(f"{name} cannot run with these settings{said}")
    return StartFailed(f"{name} {how}{said if status > 0 else ''}")
