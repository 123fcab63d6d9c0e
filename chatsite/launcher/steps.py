"""The words of a plan: jobs that end, services that stay, and which step needs which.

Pure descriptions; `supervisor.py` carries them out.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chatsite.launcher.process import Command

Say = Callable[[str], None]
Probe = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Job:
    """A command that ends. The step is ready when it has ended with status 0."""

    name: str
    command: Command
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """A process that stays. Ready when `probe` says so or, for a process without a door, when it printed `ready_line`.

    `prepare` runs before every start, also before a restart. `alive` is asked again and again once the service is
    ready: a process that hangs without ending is ended, so that it can be started again.
    """

    name: str
    command: Command
    after: tuple[str, ...] = ()
    probe: Probe | None = None
    ready_line: re.Pattern[str] | None = None
    prepare: Callable[[Say], Awaitable[None]] | None = None
    alive: Probe | None = None
    alive_every_s: float = 5.0
    start_timeout_s: float = 120.0
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10.0


Step = Job | Service
Plan = tuple[Step, ...]


def check_plan(plan: Plan) -> None:
    """A step may only need steps that stand before it, so that the reverse of the plan is an order to stop in."""
    seen: set[str] = set()
    for step in plan:
        assert step.name not in seen, f"two steps are called {step.name}"
        assert seen.issuperset(step.after), f"{step.name} needs a step that does not stand before it"
        seen.add(step.name)
