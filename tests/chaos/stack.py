"""The product as processes: a scripted engine and web servers on a database of their own; ended by process id.

Knows how to start, kill and look into them; what is promised is `oracle`'s business.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from inference.testing import EngineProcess, scripted_engine
from tests.livesite import free_port, new_database
from tests.patience import PATIENCE_S

PROJECT = Path(__file__).resolve().parents[2]
# Short leases and often stored: what takes seconds in the product takes less here.
TIMES = {"CHAT_LEASE_S": "1.5", "CHAT_CHECKPOINT_S": "0.2", "CHAT_DRAIN_S": "0.5"}


@dataclass(slots=True)
class Web:
    """One web process on its own port."""

    port: int
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """The exit status of a process that was told to stop."""
        return await asyncio.to_thread(self.process.wait, PATIENCE_S)

    def rss_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Stack:
    """A running product. `webs` are those that live; `start_web` adds one."""

    folder: Path
    environ: dict[str, str]
    engine: EngineProcess
    webs: list[Web] = field(default_factory=list)
    origin: str = "http://chat.test"
    guest_cookie: str = ""

    async def start_web(self) -> Web:
        """Returns when it is ready."""
        port = free_port()
        with (self.folder / "web.log").open("ab") as log:
            argv = [sys.executable, "manage.py", "serve", "--port", str(port)]
            process = await asyncio.to_thread(
                subprocess.Popen, argv, env=self.environ, cwd=PROJECT, stdout=log, stderr=log
            )
        web = Web(port, process)
        self.webs.append(web)
        async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as client:
            while not await _is_ready(client, port):
                if process.poll() is not None:
                    raise RuntimeError(f"the web process ended:\n{self.log()}")
                await asyncio.sleep(0.05)
        return web

    async def cookie(self) -> str:
        """The session cookie of a guest; the same one again, for guests per address are few."""
        if self.guest_cookie:
            return self.guest_cookie
        base = f"http://127.0.0.1:{self.webs[-1].port}"
        async with httpx2.AsyncClient(base_url=base) as client:
            await client.get("/signin")
            token = client.cookies["csrftoken"]
            answer = await client.post("/guest", headers={"X-CSRFToken": token, "Origin": base})
            assert answer.status_code in (200, 302), answer.text
            self.guest_cookie = f"sessionid={client.cookies['sessionid']}"
        return self.guest_cookie

    def sql(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.environ["DATABASE_URL"], autocommit=True) as connection:
            cursor = connection.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    def log(self) -> str:
        return (self.folder / "web.log").read_text()

    async def stop(self) -> None:
        for web in self.webs:
            if web.process.poll() is None:
                web.terminate()
        for web in self.webs:
            try:
                await web.ended()
            except subprocess.TimeoutExpired:
                web.kill()
                raise


@asynccontextmanager
async def running_stack() -> AsyncIterator[Stack]:
    """A stack with one web process, on a new database of the test server."""
    with tempfile.TemporaryDirectory(prefix="rill-chaos-") as folder, new_database("chaos") as url:
        async with scripted_engine() as engine:
            environ = os.environ | TIMES | {
                "DATABASE_URL": url,
                "DATA_DIR": folder,
                "ENGINE_ADDRESS": engine.address,
                "CHAT_GUESTS": "on",
                "CHAT_ORIGINS": "http://chat.test",
                "SEMCACHE_ENABLED": "off",
                "PYTHONUNBUFFERED": "1",
            }  # fmt: skip
            stack = Stack(Path(folder), environ, engine)
            try:
                await stack.start_web()
                yield stack
            finally:
                await stack.stop()


async def _is_ready(client: httpx2.AsyncClient, port: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{port}/health/ready")).status_code == 200
    except httpx2.TransportError:
        return False
