"""A scripted engine as a child process of a test.

Knows how to start it and how to end or freeze its parts. Does not know what an answer does: that is asked for in
the user's message, see `inference.testing.script`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from inference.client import EngineClient

REPOSITORY = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 20.0


@dataclass(slots=True)
class ScriptedEngine:
    """A running front. `address` stays the same over restarts."""

    address: str
    argv: Sequence[str]
    environ: dict[str, str] = field(default_factory=dict)
    token: str = ""
    tls_cert: str = ""
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Returns when the engine is ready: it has made a token."""
        path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
        environ = os.environ | {"PYTHONPATH": path} | self.environ
        self.process = await asyncio.create_subprocess_exec(*self.argv, env=environ)
        await self.wait_until(is_ready=True)

    async def wait_until(self, *, is_ready: bool) -> None:
        """Returns when the health service says so. Raises TimeoutError."""
        client = EngineClient(self.address, self.token, self.tls_cert, call_timeout_s=1.0)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while await client.health() is not is_ready:
                    if self.process is not None and self.process.returncode is not None and is_ready:
                        raise RuntimeError(f"the engine ended with status {self.process.returncode}")
                    await asyncio.sleep(0.02)
        finally:
            await client.close()

    def core_pid(self) -> int:
        """Of the core that runs now. Raises LookupError between two cores."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task")
        for task in children.iterdir():
            for pid in (task / "children").read_text().split():
                return int(pid)
        raise LookupError("there is no core now")

    def kill_core(self) -> None:
        os.kill(self.core_pid(), signal.SIGKILL)

    def freeze_core(self) -> None:
        os.kill(self.core_pid(), signal.SIGSTOP)

    def thaw_core(self) -> None:
        os.kill(self.core_pid(), signal.SIGCONT)

    async def kill_front(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> None:
        """Ends the front in order, and by force when it takes too long."""
        if self.process is None or self.process.returncode is not None:
            return
        self.process.terminate()
        try:
            async with asyncio.timeout(10):
                await self.process.wait()
        except TimeoutError:
            await self.kill_front()


@asynccontextmanager
async def scripted_engine(
    *flags: str, environ: dict[str, str] | None = None
) -> AsyncIterator[ScriptedEngine]:
    """A scripted engine on a private unix socket; `flags` are those of `python -m inference`."""
    folder = Path(tempfile.mkdtemp(prefix="rill-"))
    address = f"unix:{folder}/engine.sock"
    argv = [sys.executable, "-m", "inference.testing", "--address", address, *flags]
    engine = ScriptedEngine(address, argv, environ or {})
    try:
        await engine.start()
        yield engine
    finally:
        await engine.stop()
        shutil.rmtree(folder, ignore_errors=True)
