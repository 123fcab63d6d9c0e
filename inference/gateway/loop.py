"""The gateway core at work: commands in, packs out, the upstream's numbers now and then, a heartbeat always.

Knows what every command means here and when something must be said. A slow or absent upstream never stops the
heartbeat, so the front does not take it for a core that hangs; that no token comes, the front sees by itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from inference.core.lane import LaneStep
from inference.core.messages import (
    Admit,
    Cancel,
    Command,
    CoreReady,
    EmbedTexts,
    Forget,
    SharePrefixes,
    VerifyPairs,
    Vocabulary,
)
from inference.core.pipe import PipeClosed
from inference.gateway.completion import Completions
from inference.gateway.counters import Counters
from inference.gateway.errors import UpstreamError
from inference.gateway.generations import Generations
from inference.gateway.lane import Lane, LaneWorker
from inference.gateway.metrics import read
from inference.gateway.outbox import Outbox
from inference.gateway.pipe import AsyncFrontPipe

log = logging.getLogger(__name__)

MAX_HEARTBEAT_S = 1.0
SCRAPE_S = 2.0
# The upstream's gauges fall a moment after its last chunk.
SETTLE_S = 0.05
FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a loop drives."""

    completions: Completions
    lane: Lane
    lane_thread: Executor
    max_running: int
    step_timeout_s: float
    clock: Callable[[], float] = time.monotonic


class GatewayLoop:
    """The state of one gateway core after its start."""

    def __init__(self, pipe: AsyncFrontPipe, parts: Parts) -> None:
        self._pipe = pipe
        self._upstream = parts.completions.upstream
        self._outbox = Outbox()
        self._counters = Counters()
        self._generations = Generations(
            parts.completions.run,
            self._outbox,
            self._counters,
            max_running=parts.max_running,
            clock=parts.clock,
        )
        self._lane = LaneWorker(parts.lane, parts.lane_thread, self._on_lane_step)
        self._heartbeat_s = min(MAX_HEARTBEAT_S, parts.step_timeout_s / 4)
        self._became_idle = asyncio.Event()

    async def run(self, ready: CoreReady) -> None:
        """Until the front closes the pipe; every open request is given up then."""
        await self._pipe.send(ready)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._speak_for_ever(), name="speak")
                tasks.create_task(self._scrape_for_ever(), name="scrape")
                tasks.create_task(self._lane.run_for_ever(), name="lane")
                tasks.create_task(self._listen_for_ever(), name="listen")
        except* PipeClosed as reason:
            log.info("ending: %s", reason.exceptions[0])
        finally:
            await self._generations.close()

    # --- commands

    async def _listen_for_ever(self) -> None:
        while True:
            for command in await self._pipe.receive():
                self._obey(command)

    def _obey(self, command: Command) -> None:
        match command:
            case Admit():
                self._generations.admit(command)
            case Cancel():
                self._generations.cancel(command)
            case Vocabulary():
                pass  # the upstream knows its own
            case Forget() | SharePrefixes():
                # Nothing is kept here, and the upstream cannot be told: its KV of a conversation stays behind the
                # owner's salt until it needs the room. The report that the front waits for says 0 freed.
                self._outbox.news.set()
            case EmbedTexts() | VerifyPairs():
                self._lane.add(command)

    # --- what is said

    async def _speak_for_ever(self) -> None:
        was_running = 0
        while True:
            try:
                async with asyncio.timeout(self._heartbeat_s):
                    await self._outbox.news.wait()
            except TimeoutError:
                pass  # nothing new: a heartbeat with the numbers of now
            self._counters.steps += bool(self._outbox.tokens)
            running = self._generations.num_running
            stats = self._counters.stats(
                running=running,
                waiting=self._generations.num_waiting,
                waiting_tokens=self._generations.waiting_tokens,
            )
            await self._pipe.send(self._outbox.take(self._generations.news_of_positions(), stats))
            if was_running and not running:
                self._became_idle.set()
            was_running = running

    def _on_lane_step(self, step: LaneStep) -> None:
        self._counters.lane_batches += 1
        self._counters.embedded_texts += sum(
            len(answer.vectors) // (FLOAT_BYTES * answer.dim) for answer in step.embedded if answer.dim
        )
        self._counters.verified_pairs += sum(len(answer.scores) for answer in step.verified)
        self._outbox.embedded += step.embedded
        self._outbox.verified += step.verified
        self._outbox.news.set()

    # --- the upstream's numbers

    async def _scrape_for_ever(self) -> None:
        while True:
            try:
                self._counters.on_scrape(read(await self._upstream.metrics()))
            except (UpstreamError, ValueError) as error:
                self._counters.on_scrape(None)
                log.debug("no metrics of the upstream: %s", error)
            try:
                async with asyncio.timeout(SCRAPE_S):
                    await self._became_idle.wait()
                self._became_idle.clear()
                await asyncio.sleep(SETTLE_S)
            except TimeoutError:
                pass
