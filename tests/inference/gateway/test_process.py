"""`python -m inference --upstream URL` as it is started in production: a model folder without weights, a real encoder,
an upstream that speaks text only (so that any tokenizer fits the fake's scripts)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inference.models.tiny import write_tiny_embedder, write_tiny_model
from inference.testing import EngineProcess, UpstreamProcess
from inference.types import FinishReason
from tests.inference.contract.conftest import ask
from tests.inference.contract.test_contract import collect, ending, text_of
from tests.patience import PATIENCE_S


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    models = tmp_path_factory.mktemp("models")
    model, embedder = write_tiny_model(models / "tiny"), write_tiny_embedder(models / "embedder")
    for weights in model.glob("*.safetensors"):
        weights.unlink()
    return model, embedder


@pytest.fixture
async def engine(folders: tuple[Path, Path], tmp_path: Path) -> AsyncIterator[EngineProcess]:
    model, embedder = folders
    upstream = UpstreamProcess(["--text-only", "--no-token-ids"])
    upstream.start()
    address = f"unix:{tmp_path}/engine.sock"
    argv = [sys.executable, "-m", "inference", "--address", address, "--model", str(model)]
    argv += ["--embed-model", str(embedder), "--threads", "1", "--upstream", upstream.url]
    engine = EngineProcess(address, argv, start_timeout_s=PATIENCE_S)
    await engine.start()
    yield engine
    await engine.stop()
    upstream.stop()


async def test_a_folder_without_weights_is_served(engine: EngineProcess, folders: tuple[Path, Path]) -> None:
    client = engine.client()
    info = await client.info()
    assert (info.model, info.device, info.dtype, info.kv_bytes_per_token) == (
        folders[0].name,
        "upstream",
        "upstream",
        0,
    )
    assert info.upstream.startswith("http://127.0.0.1:")
    assert info.max_context == 8192  # the upstream's, not the folder's
    events = await collect(client.generate(ask("Hello 你好")))
    assert text_of(events) == "You said: Hello 你好 (2 words)"
    assert ending(events).finish_reason is FinishReason.STOP
    assert len((await client.embed(["Hello"])).vectors[0]) == info.embedding_dim
    await client.close()


@pytest.mark.parametrize("module", ["inference", "inference.testing"])
@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--upstream", "somewhere"], b"ENGINE_UPSTREAM"),
        (["--upstream", "http://host", "--upstream-key", "a\nb"], b"ENGINE_UPSTREAM_KEY"),
    ],
    ids=["address", "key"],
)
async def test_what_no_request_can_be_made_of_ends_with_the_exit_code_of_a_wrong_setting(
    module: str, flags: list[str], named: bytes
) -> None:
    argv = [sys.executable, "-m", module, *flags]
    ended = await asyncio.to_thread(
        subprocess.run, argv, capture_output=True, check=False, timeout=PATIENCE_S
    )
    assert ended.returncode == 78
    assert named in ended.stderr
    assert b"Traceback" not in ended.stderr
