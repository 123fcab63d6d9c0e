"""The disk tier and shared prefixes through the whole engine: over restarts, crashes and erasures."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import pytest

from inference.client import EngineClient
from inference.models.tiny import write_tiny_model
from inference.testing import EngineProcess
from inference.types import Delta, Done, GenerateRequest, Owner, Sampling, Segment
from tests.patience import PATIENCE_S

SYSTEM = "You are the support desk of a bakery. " * 8
HISTORY = (Segment("user", "Tell me about the world and the city. " * 20),)
OWNER = Owner("tenant", "user", "chat")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@dataclass(frozen=True, slots=True)
class Ended:
    """An engine that gave one answer and was stopped: what it said, and the folder that it left."""

    text: str
    folder: Path


@pytest.fixture(scope="module")
def ended(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("ended")

    async def answer() -> str:
        async with engine(model, *on_disk(folder)) as (_, client):
            return (await ask(client))[0]

    return Ended(asyncio.run(answer()), folder)


@asynccontextmanager
async def engine(
    model: Path, *flags: str, salt_key: str = "secret"
) -> AsyncIterator[tuple[EngineProcess, EngineClient]]:
    with tempfile.TemporaryDirectory(prefix="rill-") as folder:
        address = f"unix:{folder}/engine.sock"
        argv = [sys.executable, "-m", "inference", "--address", address, "--model", str(model)]
        argv += ["--embed-model", "", "--threads", "1", "--kv-memory-mb", "16", *flags]
        process = EngineProcess(address, argv, {"ENGINE_SALT_KEY": salt_key}, start_timeout_s=PATIENCE_S)
        client = process.client()
        try:
            await process.start()
            yield process, client
        finally:
            await client.close()
            await process.stop()


async def ask(
    client: EngineClient, segments: tuple[Segment, ...] = HISTORY, owner: Owner = OWNER
) -> tuple[str, Done]:
    sampling = Sampling(temperature=0.0, max_tokens=8)
    text = ""
    async for event in client.generate(GenerateRequest(str(uuid.uuid4()), segments, owner, sampling)):
        if isinstance(event, Delta):
            text += event.text
        elif isinstance(event, Done):
            done = event
    assert done.error_code == ""
    return text, done


def on_disk(data: Path) -> tuple[str, ...]:
    return ("--data-dir", str(data), "--kv-disk-mb", "16")


def files(data: Path) -> list[Path]:
    return sorted(data.glob("kv/*/*.kv"))


async def test_a_restart_is_warm_and_erasure_reaches_the_disk(
    model: Path, ended: Ended, tmp_path: Path
) -> None:
    copytree(ended.folder, tmp_path, dirs_exist_ok=True)
    assert files(tmp_path)
    async with engine(model, *on_disk(tmp_path)) as (_, client):
        again, done = await ask(client)
        stats = await client.stats()
        assert again == ended.text
        assert done.usage.reused_disk_tokens == stats.reused_disk_tokens > 0
        assert done.usage.prefilled_tokens < done.usage.prompt_tokens
        assert stats.disk_restored_blocks * 16 == stats.reused_disk_tokens
        await client.forget(OWNER)
        async with asyncio.timeout(PATIENCE_S):
            while files(tmp_path):
                await asyncio.sleep(0.01)
    assert files(tmp_path) == [], "nor is it written at the end"


async def test_another_salt_key_finds_nothing_and_leaves_nothing(
    model: Path, ended: Ended, tmp_path: Path
) -> None:
    copytree(ended.folder, tmp_path, dirs_exist_ok=True)
    assert files(tmp_path)
    async with engine(model, *on_disk(tmp_path), salt_key="another") as (_, client):
        assert files(tmp_path) == []
        _, done = await ask(client)
        assert done.usage.reused_disk_tokens == 0


async def test_users_share_a_declared_prompt_before_and_after_a_crash(model: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.json").write_text(json.dumps({"desk": SYSTEM}))
    flags = ("--shared-prefixes", str(tmp_path / "shared.json"), "--shared-overlap", "0")
    async with engine(model, *flags) as (process, client):
        await _both_share_the_desk(client)
        process.kill_core()
        await process.wait_until(is_ready=False)
        await process.wait_until(is_ready=True)
        await _both_share_the_desk(client)


async def _both_share_the_desk(client: EngineClient) -> None:
    for user in ("a", "b"):
        question = (Segment("system", SYSTEM), Segment("user", f"Hello from {user}"))
        _, done = await ask(client, question, Owner("tenant", user))
        assert done.usage.reused_shared_tokens > 0
        assert done.usage.reused_shared_tokens % 16 == 0
    (shared,) = (await client.stats()).shared_prefixes
    assert (shared.name, shared.is_shared, shared.overlap) == ("desk", True, 1.0)
