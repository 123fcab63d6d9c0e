"""Our gateway over the peers' vLLM: the same server, asked through our engine door. What it costs is the difference.

Knows how the two are started. Memory is that of the gateway alone; its start takes as long as both.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from chatsite.launcher.probes import engine_serves
from inference.client import EngineClient
from tests.bench.engines.doors import EngineDoor
from tests.bench.engines.ours import SETTINGS, VERSION
from tests.bench.engines.peers import Opened, Place, Vllm
from tests.bench.engines.processes import Child, child


@dataclass(frozen=True, slots=True)
class Gateway:
    """`upstream` opens what it stands in front of."""

    upstream: Callable[[Place], AbstractContextManager[Opened]] = Vllm(
        ("--enable-prompt-tokens-details",)
    ).open
    peer: str = "gateway"

    @contextmanager
    def open(self, place: Place) -> Iterator[Opened]:
        address = f"unix:{place.scratch}/gateway.sock"
        with self.upstream(place) as upstream:
            environ = {**SETTINGS, "ENGINE_ADDRESS": address, "ENGINE_UPSTREAM": upstream.url}
            argv = [sys.executable, "-m", "inference", "--model", str(place.model)]
            log = place.scratch / "gateway.log"
            with child(argv, log, lambda: asyncio.run(engine_serves(address)), environ) as started:
                both = Child(started.pid, upstream.child.cold_start_s + started.cold_start_s)
                about = {**upstream.about, "version": f"{VERSION} over {upstream.about['version']}"}
                yield Opened(EngineDoor(EngineClient(address)), both, about)
