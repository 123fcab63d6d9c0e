"""The core as a child process: start it, talk to it in frames, notice when it dies or stands still, start it again.

Knows the pipe, time limits and back-off. Does not know what a generation is: `front.engine` hears of it by callback.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Protocol, TypeAlias

import msgspec

from inference.core.messages import (
    FRAME_HEADER,
    MAX_FRAME_BYTES,
    Command,
    CoreReady,
    FromCore,
    Inbox,
    LoadProgress,
    StepPack,
    pack,
    unpack_from_core,
)
from inference.front.launch import CoreCommand, Launched, launch
from inference.front.spawner import Spawner

logger = logging.getLogger(__name__)

FIRST_BACKOFF_S = 0.1
MAX_BACKOFF_S = 10.0
# A core that lived so long is not in a crash loop.
HEALTHY_S = 30.0
START_TIMEOUT_S = 600.0
STOP_TIMEOUT_S = 5.0
EXIT_CONFIG = 78  # EX_CONFIG of sysexits.h
# A core that leaves so many bytes unread is stuck.
MAX_UNSENT_BYTES = 2 * MAX_FRAME_BYTES


class Listener(Protocol):
    def on_loading(self, text: str) -> None: ...
    def on_ready(self, ready: CoreReady) -> None: ...
    def on_step(self, step: StepPack) -> None: ...
    def on_lost(self, reason: str) -> None: ...
    def has_pending_work(self) -> bool: ...
    def complaint(self) -> str:
        """Why this core should be replaced although it takes steps; empty otherwise."""


class CoreLink(Protocol):
    """A core as the engine drives it: a child process (`CoreProcess`), or one in this process (`offline.LocalCore`)."""

    gave_up: asyncio.Event
    is_ready: bool
    num_restarts: int

    def start(self) -> None: ...
    async def stop(self) -> None: ...
    def send(self, command: Command) -> None: ...
    def check_progress(self) -> None: ...


Connect: TypeAlias = Callable[[Listener], CoreLink]


def as_process(
    command: CoreCommand, *, step_timeout_s: float, spawner: Spawner, first: Future[Launched] | None = None
) -> Connect:
    """A core of its own process for the engine that asks for it."""

    def connect(listener: Listener) -> CoreProcess:
        return CoreProcess(
            command,
            listener,
            step_timeout_s=step_timeout_s,
            clock=time.monotonic,
            spawner=spawner,
            first=first,
        )

    return connect


class CoreProcess:
    """Restarts the core for ever, until `stop()`. `pid` is None while there is none."""

    def __init__(
        self,
        command: CoreCommand,
        listener: Listener,
        *,
        step_timeout_s: float,
        clock: Callable[[], float],
        spawner: Spawner,
        first: Future[Launched] | None = None,
    ) -> None:
        """`first`: a core that was launched already, for the first life."""
        self._command = command
        self._first = first
        self._listener = listener
        self._step_timeout_s = step_timeout_s
        self._clock = clock
        self._spawner = spawner
        self._outbox: list[Command] = []
        self._writer: asyncio.StreamWriter | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None
        self._pending_since: float | None = None
        self._lost_reason = ""
        self._exit_status: int | None = None
        self.gave_up = asyncio.Event()  # the core says that starting it again does not help
        self.is_ready = False
        self.num_restarts = 0
        self.last_step_at = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        self._task = asyncio.create_task(self._supervise(), name="core-supervisor")

    async def stop(self) -> None:
        """Closes the pipe, on which the core ends by itself; kills it when it does not."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._end_process()

    def send(self, command: Command) -> None:
        """Queues a command; all commands of one turn of the loop leave in one frame."""
        if not self._outbox:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outbox.append(command)

    def kill(self, reason: str) -> None:
        """Ends a core that cannot be trusted; the supervisor starts the next one."""
        logger.error("core %s is killed: %s", self.pid, reason)
        self._lost_reason = reason
        if self._process is not None:
            self._process.kill()

    def check_progress(self) -> None:
        """Called regularly: no step for step_timeout_s with work pending means that the core hangs."""
        if not self.is_ready or self._lost_reason:
            return
        if complaint := self._listener.complaint():
            self.kill(complaint)
            return
        if not self._listener.has_pending_work():
            self._pending_since = None
            return
        now = self._clock()
        self._pending_since = now if self._pending_since is None else self._pending_since
        silent_s = now - max(self._pending_since, self.last_step_at)
        if silent_s > self._step_timeout_s:
            self.kill(f"no step for {silent_s:.1f} s with work pending")

    def _flush(self) -> None:
        commands, self._outbox = self._outbox, []
        if self._writer is None or not commands:
            return  # the core is gone: on_lost has ended, or will end, what these commands were for
        self._writer.write(pack(Inbox(commands)))
        if self._writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self.kill("it does not read its pipe")

    async def _supervise(self) -> None:
        backoff_s = FIRST_BACKOFF_S
        while not self.gave_up.is_set():
            started_at = self._clock()
            try:
                await self._run_once()
            except OSError as error:
                self._lost_reason = f"cannot be started: {error}"
            except Exception as error:  # of the listener: the core is replaced, everybody hears of it
                logger.exception("what the core said could not be handled")
                self._lost_reason = f"not understood: {error!r}"
            was_ready, self.is_ready = self.is_ready, False
            await self._end_process()
            self._listener.on_lost(self._lost_reason)
            if self._exit_status == EXIT_CONFIG:
                self.gave_up.set()
                return
            if was_ready and self._clock() - started_at > HEALTHY_S:
                backoff_s = FIRST_BACKOFF_S
            logger.warning("core ended (%s); next start in %.1f s", self._lost_reason, backoff_s)
            await asyncio.sleep(backoff_s)
            backoff_s = min(backoff_s * 2, MAX_BACKOFF_S)
            self.num_restarts += 1

    async def _run_once(self) -> None:
        """One life of the core, until its pipe closes or says something that is no message."""
        self._lost_reason, self._pending_since = "", None
        launching, self._first = self._first or launch(self._command, self._spawner), None
        launched = await asyncio.wrap_future(launching)
        self._process = launched.process
        reader, self._writer = await asyncio.open_unix_connection(sock=launched.pipe)
        try:
            async with asyncio.timeout(START_TIMEOUT_S) as start_limit:
                async for message in _messages(reader):
                    self._hear(message)
                    # What tells how its start goes on is not stuck: a gateway may wait for its upstream for hours.
                    start_limit.reschedule(
                        None if self.is_ready else asyncio.get_running_loop().time() + START_TIMEOUT_S
                    )
        except TimeoutError:
            self._lost_reason = f"not ready, and silent for {START_TIMEOUT_S:.0f} s"
        except (msgspec.DecodeError, ValueError) as error:
            self._lost_reason = f"garbage on the pipe: {error}"
        except ConnectionError as error:
            self._lost_reason = self._lost_reason or f"pipe broken: {error}"

    def _hear(self, message: FromCore) -> None:
        match message:
            case StepPack():
                self.last_step_at = self._clock()
                self._listener.on_step(message)
            case CoreReady():
                self.is_ready, self.last_step_at = True, self._clock()
                self._listener.on_ready(message)
            case LoadProgress():
                self._listener.on_loading(message.text)

    async def _end_process(self) -> None:
        self.is_ready = False
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._process is None:
            return
        process, self._process = self._process, None
        if self._lost_reason:
            process.kill()
        self._exit_status = await self._spawner.wait(process, STOP_TIMEOUT_S)
        self._lost_reason = self._lost_reason or _exit_text(self._exit_status)


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[FromCore]:
    """Frames until the pipe ends. Raises ValueError or DecodeError for what is no frame."""
    while True:
        try:
            (size,) = FRAME_HEADER.unpack(await reader.readexactly(FRAME_HEADER.size))
            if size > MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {size} bytes")
            body = await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return
        yield unpack_from_core(body)


def _exit_text(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"
