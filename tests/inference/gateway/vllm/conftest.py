"""The gateway in front of a real vLLM, as a target of the contract tests: `make gateway-vllm`.

Where VLLM_URL names one that runs already, that one is asked, and MODEL must name the folder of its model. Else
the bench's vLLM for CPUs is started over the trial model. In float32: an answer must not depend on whether its
beginning was read or made. With one thread: several wait for each other, and on a busy machine for minutes.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from inference import settings
from inference.config import EngineConfig
from inference.gateway.address import parse_address
from inference.gateway.metrics import Scrape, read
from inference.gateway.upstream import Upstream
from inference.models.resolve import resolve
from inference.models.tiny import write_tiny_embedder, write_tiny_verifier
from inference.testing import EngineProcess
from tests.bench.engines.peers import CORES, Place, Vllm
from tests.inference.contract.conftest import REAL_FLAGS, Target, client
from tests.patience import PATIENCE_S

# Its blocks may not be smaller on a CPU.
BLOCK_TOKENS = 32
FLAGS = (
    *("--dtype", "float32", "--block-size", str(BLOCK_TOKENS), "--max-model-len", "4096"),
    *("--enable-prompt-tokens-details", "--scheduling-policy", "priority"),
    *(
        "--structured-outputs-config.backend",
        "guidance",
    ),  # the other one lets a small model write blanks for ever
    "--enforce-eager",  # nothing is compiled at the start, which takes minutes beside others
)
# One token each time in the vocabularies of GPT-2's kind.
WORD = " the"

__all__ = ["client", "gateway", "target", "vllm"]


@dataclass(frozen=True, slots=True)
class Server:
    """A vLLM that serves; `read` asks it for its own numbers."""

    url: str
    model: Path

    async def read(self) -> Scrape:
        upstream = Upstream(parse_address(self.url), "", 1)
        try:
            return read(await upstream.metrics())
        finally:
            await upstream.close()

    async def served_model(self) -> str:
        upstream = Upstream(parse_address(self.url), "", 1)
        try:
            return (await upstream.models())[0].id
        finally:
            await upstream.close()

    async def until_running(self, num: int) -> None:
        """Returns when it says that so many requests run and none waits."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                now = await self.read()
                if (now.running, now.waiting) == (num, 0):
                    return
                await asyncio.sleep(0.02)


@pytest.fixture(scope="session")
def vllm() -> Iterator[Server]:
    config = settings.read(EngineConfig)
    model = resolve(config.model, config.data_dir).absolute()
    with ExitStack() as stack:
        if url := os.environ.get("VLLM_URL"):
            yield Server(url, model)
            return
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rill-")))
        kept = Path(config.data_dir).absolute() / "bench"
        opened = stack.enter_context(Vllm(FLAGS, CORES[-1:]).open(Place(model, scratch, kept)))
        yield Server(opened.url, model)


@pytest.fixture(scope="session")
def gateway(vllm: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """`python -m inference --upstream URL`, as in production, with small encoders."""
    models = tmp_path_factory.mktemp("models")
    folder = Path(tempfile.mkdtemp(prefix="rill-"))
    address = f"unix:{folder}/engine.sock"
    argv = [sys.executable, "-m", "inference", "--address", address, "--model", str(vllm.model)]
    argv += ["--upstream", vllm.url, "--threads", "1", *REAL_FLAGS]
    argv += ["--embed-model", str(write_tiny_embedder(models / "embedder"))]
    argv += ["--verify-model", str(write_tiny_verifier(models / "verifier"))]
    engine = EngineProcess(address, argv, start_timeout_s=PATIENCE_S)
    asyncio.run(engine.start())
    yield Target(
        "vllm",
        engine,
        plays_scripts=False,
        keeps_kv=False,
        ends_by_itself=True,
        word=WORD,
        block_tokens=BLOCK_TOKENS,
    )
    asyncio.run(engine.stop())
    shutil.rmtree(folder)


@pytest.fixture
def target(gateway: Target) -> Target:
    return gateway
