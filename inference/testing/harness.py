"""A scripted engine as a child process of a test.

Knows how to start it and how to end or freeze its parts. Does not know what an answer does: that is asked for in
the user's message, see `inference.testing.script`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from inference.client import EngineClient

REPOSITORY = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 15.0


@dataclass(slots=True)
class EngineProcess:
    """A front started by `argv`, with its core below it. `address` stays the same over restarts."""

    address: str
    argv: Sequence[str]
    environ: dict[str, str] = field(default_factory=dict)
    token: str = ""
    tls_cert: str = ""
    start_timeout_s: float = START_TIMEOUT_S
    process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Returns when the engine is ready: it has made a token."""
        path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
        environ = os.environ | {"PYTHONPATH": path} | self.environ
        self.process = await asyncio.to_thread(subprocess.Popen, self.argv, env=environ)
        await self.wait_until(is_ready=True)

    async def wait_until(self, *, is_ready: bool) -> None:
        """Returns when the health service says so. Raises TimeoutError, or RuntimeError for a front that ended."""
        client = self.client(call_timeout_s=1.0)
        try:
            async with asyncio.timeout(self.start_timeout_s):
                while await client.health() is not is_ready:
                    if is_ready and self.process is not None and self.process.poll() is not None:
                        raise RuntimeError(f"the engine ended with status {self.process.returncode}")
                    await asyncio.sleep(0.02)
        finally:
            await client.close()

    def client(self, *, call_timeout_s: float = 10.0, patience_s: float = 20.0) -> EngineClient:
        """A new client of this engine; the caller closes it."""
        return EngineClient(
            self.address, self.token, self.tls_cert, call_timeout_s=call_timeout_s, patience_s=patience_s
        )

    def core_pid(self) -> int:
        """Of the core that runs now. Raises LookupError between two cores."""
        assert self.process is not None
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            for pid in (task / "children").read_text().split():
                if b"grammar_trial" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
        raise LookupError("there is no core now")

    def kill_core(self) -> None:
        os.kill(self.core_pid(), signal.SIGKILL)

    def freeze_core(self) -> None:
        os.kill(self.core_pid(), signal.SIGSTOP)

    def thaw_core(self) -> None:
        os.kill(self.core_pid(), signal.SIGCONT)

    async def kill_front(self) -> None:
        """SIGKILL; the core ends with it."""
        assert self.process is not None
        self.process.kill()
        await asyncio.to_thread(self.process.wait)

    async def stop(self) -> int:
        """The exit status after SIGTERM; ended by force when it takes too long."""
        if self.process is None:
            return 0
        self.process.terminate()
        try:
            return await asyncio.to_thread(self.process.wait, STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            await self.kill_front()
            raise


@asynccontextmanager
async def scripted_engine(*flags: str, environ: dict[str, str] | None = None) -> AsyncIterator[EngineProcess]:
    """A scripted engine on a private unix socket; `flags` are those of `python -m inference`."""
    folder = Path(tempfile.mkdtemp(prefix="rill-"))
    engine = scripted_process(folder, *flags, environ=environ)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.stop()
        shutil.rmtree(folder)


@dataclass(slots=True)
class UpstreamProcess:
    """A fake upstream for a scripted engine with `--upstream`; `url` is known after `start`."""

    flags: Sequence[str] = ()
    url: str = ""
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = [sys.executable, "-m", "inference.testing.upstream", *self.flags]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=REPOSITORY)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().split()[-1]

    def stop(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.terminate()
        self.process.wait(STOP_TIMEOUT_S)
        self.process.stdout.close()


def scripted_process(folder: Path, *flags: str, environ: dict[str, str] | None = None) -> EngineProcess:
    """The same, not started yet, with its socket in `folder`."""
    address = f"unix:{folder}/engine.sock"
    argv = [sys.executable, "-m", "inference.testing", "--address", address, *flags]
    return EngineProcess(address, argv, environ or {})
