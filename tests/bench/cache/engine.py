"""The engine beside the cache: a process of its own with the models of the settings, or a scripted one that only shows
that a measurement works. Knows how to start and end it, and how to keep it busy; knows no cache."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from inference.client import EngineClient
from inference.testing import EngineProcess, script_text, scripted_process
from inference.types import Delta, GenerateRequest, Owner, Sampling, Segment

NUM_STREAMS = 4
STARTS_WITHIN_S = 180.0
TALK = "Write a very long story about a river, its people and their boats, day by day."


@dataclass(frozen=True, slots=True)
class Engine:
    """`talk` asks it for a long answer."""

    client: EngineClient
    talk: str


@contextmanager
def running(folder: Path, runner: asyncio.Runner, *, is_scripted: bool, verifier: str) -> Iterator[Engine]:
    """An engine that ends with the block; its client belongs to the runner's loop."""
    process = scripted_process(folder) if is_scripted else _real(folder, verifier)
    client = process.client(call_timeout_s=30.0)
    try:
        runner.run(process.start())
        yield Engine(client, script_text(tokens=2000, delay_ms=20) if is_scripted else TALK)
    finally:
        runner.run(client.close())
        runner.run(process.stop())


def _real(folder: Path, verifier: str) -> EngineProcess:
    address = f"unix:{folder}/engine.sock"
    argv = [sys.executable, "-m", "inference", "--address", address]
    argv += ["--verify-model", verifier] if verifier else []
    return EngineProcess(address, argv, start_timeout_s=STARTS_WITHIN_S)


@asynccontextmanager
async def decoding(engine: Engine, num_streams: int = NUM_STREAMS) -> AsyncIterator[None]:
    """So many answers are being made as long as the block runs. What fails there fails the block."""
    begun = [asyncio.Event() for _ in range(num_streams)]
    streams = [asyncio.create_task(_talk(engine, number, event)) for number, event in enumerate(begun)]
    try:
        async with asyncio.timeout(STARTS_WITHIN_S):
            await asyncio.gather(*(event.wait() for event in begun))
        yield
        failed = [stream.exception() for stream in streams if stream.done() and not stream.cancelled()]
        if failed:
            raise RuntimeError(f"an answer ended: {failed[0]}")
    finally:
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)


async def _talk(engine: Engine, number: int, begun: asyncio.Event) -> None:
    """Answer after answer; the last one is cancelled with the task."""
    segments, owner = (Segment("user", engine.talk),), Owner("bench", f"stream:{number}")
    while True:
        request = GenerateRequest(str(uuid.uuid4()), segments, owner, Sampling(max_tokens=1500))
        try:
            async for event in engine.client.generate(request):
                if isinstance(event, Delta):
                    begun.set()
        finally:
            await engine.client.cancel(request.generation_id)
