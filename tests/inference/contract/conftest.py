"""The engines that every contract test runs against: the scripted one, the real one with a tiny random model, and
the gateway in front of a fake upstream. What differs by nature is said here once, as facts of the target."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from inference.client import EngineClient
from inference.testing import EngineProcess, UpstreamProcess, script_text, scripted_process
from inference.testing.upstream import BLOCK_TOKENS
from inference.types import EngineStats, GenerateRequest, Owner, Sampling, Segment
from tests.patience import PATIENCE_S

# Two places in the batch and three in the queue, so that tests can fill both.
FLAGS = ("--max-batch", "2", "--max-queue", "3", "--probe-interval-s", "0.5", "--probe-timeout-s", "2")
# A random model is soon caught in a loop, and tests want answers of any length from it.
REAL_FLAGS = (*FLAGS, "--repetition-tokens", "0")
OWNER = Owner("tenant", "user")


@dataclass(slots=True)
class Target:
    """One implementation under test.

    `keeps_kv`: it holds a conversation's KV itself, so it can drop it. `ends_by_itself`: its model was trained, and
    stops when it has said all. `word` is one token each time that it is repeated. `block_tokens`: only whole blocks of
    so many tokens are found again.
    """

    kind: str
    engine: EngineProcess
    plays_scripts: bool = True
    keeps_kv: bool = True
    ends_by_itself: bool = False
    word: str = "y"
    block_tokens: int = 1

    def request(self, num_tokens: int, *, delay_ms: float = 5, **sampling: object) -> GenerateRequest:
        """A request whose answer has exactly `num_tokens` tokens."""
        text = script_text(tokens=num_tokens, delay_ms=delay_ms) if self.plays_scripts else "Tell me a story"
        least = num_tokens if self.ends_by_itself else 0
        chosen = Sampling(temperature=0.0, max_tokens=num_tokens, min_tokens=least)
        return ask(text, replace(chosen, **sampling))  # type: ignore[arg-type]


def ask(text: str, sampling: Sampling | None = None, *, deadline_s: float = 0.0) -> GenerateRequest:
    segments = (Segment("user", text),)
    return GenerateRequest(str(uuid.uuid4()), segments, OWNER, sampling or Sampling(), deadline_s=deadline_s)


@pytest.fixture(scope="package")
def run_folder() -> Iterator[Path]:
    """Short: a socket's path ends at 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="rill-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="package")
def scripted(run_folder: Path) -> Iterator[Target]:
    folder = run_folder / "scripted"
    yield from _running(Target("scripted", scripted_process(folder, *FLAGS)))


@pytest.fixture(scope="package")
def real(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    from inference.models.tiny import write_tiny_embedder, write_tiny_model, write_tiny_verifier

    models = tmp_path_factory.mktemp("models")
    model = write_tiny_model(models / "tiny", has_tools=True)
    embedder = write_tiny_embedder(models / "embedder")
    verifier = write_tiny_verifier(models / "verifier")
    address = f"unix:{run_folder}/real/engine.sock"
    argv = [sys.executable, "-m", "inference", "--address", address, "--model", str(model)]
    argv += ["--embed-model", str(embedder), "--verify-model", str(verifier)]
    argv += ["--threads", "1", "--kv-memory-mb", "16", *REAL_FLAGS]
    yield from _running(
        Target("real", EngineProcess(address, argv, start_timeout_s=PATIENCE_S), plays_scripts=False)
    )


@pytest.fixture(scope="package")
def gateway(run_folder: Path) -> Iterator[Target]:
    """The front and the gateway core, as in production; the upstream plays the scripts."""
    upstream = UpstreamProcess()
    upstream.start()
    engine = scripted_process(run_folder / "gateway", "--upstream", upstream.url, *FLAGS)
    yield from _running(Target("gateway", engine, keeps_kv=False, block_tokens=BLOCK_TOKENS))
    upstream.stop()


@pytest.fixture(params=["scripted", "real", "gateway"])
def target(request: pytest.FixtureRequest) -> Target:
    found: Target = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def client(target: Target) -> AsyncIterator[EngineClient]:
    """Of an engine that is ready and idle."""
    await target.engine.wait_until(is_ready=True)
    client = target.engine.client()
    await wait_until_idle(client)
    yield client
    await client.close()


async def wait_until_idle(client: EngineClient) -> EngineStats:
    """The first numbers that show nothing running: an upstream's are read a moment later than answers end."""
    async with asyncio.timeout(PATIENCE_S):
        while (stats := await client.stats()).running or stats.waiting:
            await asyncio.sleep(0.01)
    return stats


def _running(target: Target) -> Iterator[Target]:
    asyncio.run(target.engine.start())
    yield target
    asyncio.run(target.engine.stop())
