"""Our engine as the bench starts it: by itself behind its own door, and below the site with `/v1` before it.

Knows commands and settings. The site's processes are as low as the product's launcher sets them, so that the core
outranks them in the bench, too.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from chatsite.launcher.config import LauncherConfig
from chatsite.launcher.probes import engine_serves
from inference import settings
from inference.client import EngineClient
from tests.bench.engines.doors import EngineDoor, SiteDoor
from tests.bench.engines.peers import Opened, Place
from tests.bench.engines.processes import Child, NotStarted, child
from tests.bench.engines.workloads import AT_ONCE
from tests.livesite import LiveSite, live_site
from tests.plugins.servers import Servers

NICE = settings.read(LauncherConfig).nice
# What is not measured must not end or refuse an answer: a hot loop of words, a long queue, a slow machine.
SETTINGS = {
    "ENGINE_MAX_BATCH": str(AT_ONCE),
    "ENGINE_REPETITION_TOKENS": "0",
    "ENGINE_MAX_QUEUE": "10000",
    "ENGINE_MAX_QUEUED_TOKENS": "10000000",
    "ENGINE_TARGET_TTFT_S": "3600",
    "ENGINE_DEADLINE_S": "3600",
    "ENGINE_STEP_TIMEOUT_S": "600",
    "ENGINE_FRONT_NICE": str(NICE),
    # Words that go on past their end repeat themselves: guesses would come true as they never do for people.
    "ENGINE_SPECULATE": "off",
}
NO_ENCODERS = ("--embed-model", "")  # an empty variable would be no word of it, and so the default
VERSION = f"rill, torch {version('torch')}"


@dataclass(frozen=True, slots=True)
class Ours:
    """The engine by itself. `variables` are settings that make another engine of it."""

    dtype: str
    variables: Mapping[str, str] = field(default_factory=dict)
    peer: str = "ours"

    @contextmanager
    def open(self, place: Place) -> Iterator[Opened]:
        address = f"unix:{place.scratch}/engine.sock"
        environ = {**SETTINGS, "ENGINE_ADDRESS": address, "ENGINE_DTYPE": self.dtype, **self.variables}
        argv = [sys.executable, "-m", "inference", "--model", str(place.model), *NO_ENCODERS]
        log = place.scratch / "ours.log"
        with child(argv, log, lambda: asyncio.run(engine_serves(address)), environ) as started:
            yield Opened(
                EngineDoor(EngineClient(address)), started, {"version": VERSION, "dtype": self.dtype}
            )


@dataclass(frozen=True, slots=True)
class Site:
    """The site over the same engine, asked at `/v1`."""

    dtype: str
    peer: str = "ours"

    @contextmanager
    def open(self, place: Place) -> Iterator[Opened]:
        with ExitStack() as stack:
            try:
                site = stack.enter_context(_site(place, self.dtype))
            except RuntimeError as error:
                raise NotStarted(str(error)) from error
            for thread in Path(f"/proc/{site.web.pid}/task").iterdir():
                os.setpriority(os.PRIO_PROCESS, int(thread.name), NICE)
            door = SiteDoor(site.url, site.environ["ENGINE_MODEL_NAME"], site.key("bench", "chat"))
            yield Opened(door, Child(site.engine.pid, 0.0), {"version": VERSION, "dtype": self.dtype})


@contextmanager
def _site(place: Place, dtype: str) -> Iterator[LiveSite]:
    with tempfile.TemporaryDirectory(prefix="rill-bench-") as folder:
        servers = Servers(Path(folder))
        try:
            os.environ.update(servers.addresses())
            more = {
                "SECRET_KEY": secrets.token_urlsafe(48),
                "SEMCACHE_ENABLED": "off",
                "CHAT_MAX_LIVE_PER_USER": "10000",
                "CHAT_LOG_LEVEL": "WARNING",
                "ENGINE_DTYPE": dtype,
                "ENGINE_MODEL_NAME": "bench",
            }
            engine = ("inference", "--model", str(place.model), *NO_ENCODERS)
            with live_site("engines_bench", engine, **(SETTINGS | more)) as site:
                yield site
        finally:
            servers.stop()
