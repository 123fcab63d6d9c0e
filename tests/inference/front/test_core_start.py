"""How long the front waits for a core that starts."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from inference import __main__ as engine
from inference.core.messages import CoreReady, StepPack
from inference.front import core_process
from inference.front.core_process import EXIT_CONFIG, CoreProcess
from inference.front.launch import CoreCommand, Launched, launch
from inference.front.model_folder import FolderError
from inference.front.spawner import Spawner
from inference.models.tiny import write_tiny_model
from tests.patience import PATIENCE_S

SLOW_CORE = """
import select, socket, sys
from inference.core.messages import CoreReady, LoadProgress, pack
pipe = socket.socket(fileno=int(sys.argv[-1]))
for number in range(int(sys.argv[1])):
    pipe.sendall(pack(LoadProgress(f"waiting {number}")))
    select.select([pipe], [], [], 0.3)
pipe.sendall(pack(CoreReady("r", 64, "none", "none", 0, 16, 0)))
pipe.recv(1)
"""


class Listener:
    def __init__(self) -> None:
        self.loading: list[str] = []
        self.lost: list[str] = []
        self.news = asyncio.Event()

    def on_loading(self, text: str) -> None:
        self.loading.append(text)

    def on_ready(self, ready: CoreReady) -> None:
        self.news.set()

    def on_step(self, step: StepPack) -> None: ...

    def on_lost(self, reason: str) -> None:
        self.lost.append(reason)
        self.news.set()

    def has_pending_work(self) -> bool:
        return False

    def complaint(self) -> str:
        return ""


async def run(code: str, num_lines: int) -> Listener:
    """Until the core is ready or lost."""
    listener = Listener()
    command = CoreCommand([sys.executable, "-c", code, str(num_lines)], {})
    core = CoreProcess(
        command,
        listener,
        step_timeout_s=5,
        clock=asyncio.get_running_loop().time,
        spawner=Spawner(),
    )
    core.start()
    async with asyncio.timeout(PATIENCE_S):
        await listener.news.wait()
    await core.stop()
    return listener


async def test_a_start_that_tells_how_it_goes_on_may_take_longer_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core_process, "START_TIMEOUT_S", 2.0)
    listener = await run(SLOW_CORE, 10)
    assert (len(listener.loading), listener.lost) == (10, [])


async def test_a_start_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_process, "START_TIMEOUT_S", 0.5)
    listener = await run("import time; time.sleep(60)", 0)
    assert listener.lost == ["not ready, and silent for 0 s"]


async def test_a_core_that_was_launched_before_is_the_first_one_only() -> None:
    listener, spawner = Listener(), Spawner()
    command = CoreCommand([sys.executable, "-c", SLOW_CORE, "1"], {})
    first = launch(command, spawner)
    core = CoreProcess(command, listener, step_timeout_s=5, clock=lambda: 0.0, spawner=spawner, first=first)
    core.start()
    for num_lives in (1, 2):
        async with asyncio.timeout(PATIENCE_S):
            while not (core.is_ready and len(listener.loading) == num_lives):
                await asyncio.sleep(0.01)
        assert (core.pid == first.result().process.pid) is (num_lives == 1)
        core.kill("for the test")
        async with asyncio.timeout(PATIENCE_S):
            while len(listener.lost) < num_lives:
                await asyncio.sleep(0.01)
    await core.stop()


def test_the_core_is_launched_before_the_front_reads_its_files_and_ends_where_they_are_bad(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    launched: list[Future[Launched]] = []

    def launch_sleeper(_: CoreCommand, spawner: Spawner) -> Future[Launched]:
        sleeper = CoreCommand([sys.executable, "-c", "import time; time.sleep(600)"], {})
        launched.append(launch(sleeper, spawner))
        return launched[0]

    def read(*_: Any, **__: Any) -> None:
        assert launched
        raise FolderError("no template")

    monkeypatch.setattr(engine, "launch", launch_sleeper)
    monkeypatch.setattr(engine, "read_model_folder", read)
    monkeypatch.setattr(engine, "resolve", lambda *_: write_tiny_model(tmp_path / "tiny"))
    monkeypatch.setattr(engine, "resolve_verifier", lambda *_: None)
    assert engine.main([]) == EXIT_CONFIG
    assert launched[0].result().process.returncode == -9
