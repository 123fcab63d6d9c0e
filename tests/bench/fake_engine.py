"""A peer that makes up its tokens at once: `/v1/completions` as vLLM has it and `/completion` as llama.cpp has it, with
everything that was asked for on record."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from inference.testing.http import HttpAnswer, HttpRequest, HttpServer
from tests.bench.engines.doors import IdsDoor, LlamaCppDoor
from tests.bench.engines.peers import Opened, Place
from tests.bench.engines.processes import Child, NotStarted

WORD, TOKEN = " fake", 7


@dataclass(slots=True)
class FakeEngine:
    """Satisfies `every.Engine`. After `num_whole` answers every answer is one token too short."""

    speaks: str = "vllm"
    peer: str = "fake"
    absence: str = ""
    num_whole: int = 1_000_000
    received: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def open(self, place: Place) -> Iterator[Opened]:
        if self.absence:
            raise NotStarted(self.absence)
        started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)))
        thread.start()
        url, loop, stop = started.result()
        door = IdsDoor(url, "fake") if self.speaks == "vllm" else LlamaCppDoor(url)
        try:
            about = {"version": f"fake {self.speaks}", "dtype": "bf16"}
            yield Opened(door, Child(os.getpid(), 0.5), about, url)
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()

    async def _serve(self, started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
        server, stop = HttpServer(self._answer), asyncio.Event()
        await server.start()
        started.set_result((server.url, asyncio.get_running_loop(), stop))
        await stop.wait()
        await server.stop()

    async def _answer(self, request: HttpRequest) -> HttpAnswer:
        if request.path == "/v1/models":
            return HttpAnswer(body=json.dumps({"data": [{"id": "fake", "max_model_len": 2048}]}).encode())
        body = json.loads(request.body or b"{}")
        self.received.append(body)
        events = self._as_vllm if request.path == "/v1/completions" else self._as_llamacpp
        return HttpAnswer(events=events(body))

    @property
    def _too_few(self) -> int:
        return int(len(self.received) > self.num_whole)

    async def _as_vllm(self, body: dict[str, Any]) -> AsyncGenerator[str]:
        num = body["max_tokens"] - self._too_few
        for left in reversed(range(num)):
            end = None if left else "length"
            yield json.dumps({"choices": [{"text": WORD, "token_ids": [TOKEN], "finish_reason": end}]})
        yield json.dumps({"choices": [], "usage": {"completion_tokens": num}})
        yield "[DONE]"

    async def _as_llamacpp(self, body: dict[str, Any]) -> AsyncGenerator[str]:
        num = body["n_predict"] - self._too_few
        for _ in range(num):
            yield json.dumps({"content": WORD, "tokens": [TOKEN], "stop": False})
        yield json.dumps({"content": "", "tokens": [], "stop": True, "tokens_predicted": num})
