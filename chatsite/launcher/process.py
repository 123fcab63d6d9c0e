"""One child process: started through the shim, its lines passed on, stopped with a grace period.

Knows nothing of why a child runs, whether it is ready or whether it will be started again.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

SHIM = Path(__file__).with_name("shim.py")
LONGEST_LINE_BYTES = 16_384
FIRST_LINES_KEPT = 200
PIPE_GRACE_S = 1.0


class Identity(StrEnum):
    """As whom a program runs; see the shim."""

    KEEP = "keep"
    NAMESPACE = "namespace"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Command:
    """What to execute. `argv[0]` is an absolute path; `death_signal` is sent by the kernel when the launcher dies."""

    argv: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: Path = Path("/")
    nice: int = 0
    death_signal: signal.Signals = signal.SIGKILL
    identity: Identity = Identity.KEEP
    stdin: Path = Path(os.devnull)

    def shimmed(self) -> tuple[str, ...]:
        shim = (sys.executable, "-I", "-S", str(SHIM))
        return (
            *shim,
            str(os.getpid()),
            str(int(self.death_signal)),
            str(self.nice),
            self.identity,
            *self.argv,
        )


class Child:
    """A running process in a group of its own, so that Ctrl-C reaches it only through its supervisor.

    Not in a session of its own: where the kernel schedules by session (autogroups, the default on many machines),
    the nice steps between two sessions mean nothing and the engine core would lose its advantage.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        output: asyncio.StreamReader,
        transport: asyncio.BaseTransport,
        on_line: Callable[[str], None],
    ) -> None:
        self._process = process
        self._output = output
        self._transport = transport
        self._on_line = on_line
        self._pump = asyncio.create_task(self._pass_lines_on())
        self._first_lines: list[str] = []
        self.last_line = ""

    @classmethod
    async def spawn(cls, command: Command, on_line: Callable[[str], None]) -> Child:
        # A pipe of our own: asyncio's would keep `wait()` from returning while a grandchild holds it open.
        reading, writing = _pipe()
        stdin = os.open(command.stdin, os.O_RDONLY)
        output, transport = await _stream_of(reading)
        try:
            process = await asyncio.create_subprocess_exec(
                *command.shimmed(),
                cwd=command.cwd,
                env=command.environ,
                stdin=stdin,
                stdout=writing,
                stderr=writing,
                process_group=0,
            )
        except BaseException:
            transport.close()
            raise
        finally:
            os.close(stdin)
            os.close(writing)
        return cls(process, output, transport, on_line)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    def has_printed(self, pattern: re.Pattern[str]) -> bool:
        """Whether one of its first lines matches: how a process without a door tells that it is ready."""
        return any(pattern.search(line) for line in self._first_lines)

    async def wait(self) -> int:
        """The exit status (negative: ended by that signal), after its last lines were passed on."""
        status = await self._process.wait()
        # A grandchild may hold the pipe open after the child is gone; nobody waits for its lines.
        await asyncio.wait({self._pump}, timeout=PIPE_GRACE_S)
        self._pump.cancel()
        self._transport.close()
        return status

    async def stop(self, stop_signal: signal.Signals, grace_s: float, hurry: asyncio.Event) -> None:
        """Ask politely, then end the whole process group when the grace is over or `hurry` is set."""
        if self.is_running:
            # Not through `send_signal`, which may reap the child before asyncio does and lose its status.
            with suppress(ProcessLookupError):
                os.kill(self.pid, stop_signal)
            waits = {asyncio.create_task(self._process.wait()), asyncio.create_task(hurry.wait())}
            await asyncio.wait(waits, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
            for task in waits:
                task.cancel()
        self.kill_group()
        await self.wait()

    def kill_group(self) -> None:
        """End the child and whatever it left behind in its process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _pass_lines_on(self) -> None:
        rest = b""
        while chunk := await self._output.read(65_536):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LONGEST_LINE_BYTES:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._pass_on(line)
        if rest:
            self._pass_on(rest)

    def _pass_on(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()
        if text:
            self.last_line = text
            if len(self._first_lines) < FIRST_LINES_KEPT:
                self._first_lines.append(text)
            self._on_line(text)


def _pipe() -> tuple[io.FileIO, int]:
    """The reading end as a file, the writing end as a descriptor to hand on."""
    reading, writing = os.pipe()
    return io.FileIO(reading), writing


async def _stream_of(pipe: io.FileIO) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    """A reader of `pipe`; closing the transport closes the pipe."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    return reader, transport


async def run_to_end(command: Command, on_line: Callable[[str], None]) -> tuple[int, str]:
    """Run `command`, pass its lines on, and return (exit status, last line)."""
    child = await Child.spawn(command, on_line)
    try:
        return await child.wait(), child.last_line
    finally:
        if child.is_running:
            child.kill_group()
