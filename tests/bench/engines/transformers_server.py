"""`python -m tests.bench.engines.transformers_server WAY --model FOLDER --port N`: transformers behind as much HTTP as
the bench asks for, because it brings no server that takes token ids.

Knows the form of vLLM's `/v1/completions`, text and stop strings. Does not know how tokens are made.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from inference.testing.http import HttpAnswer, HttpRequest, HttpServer
from tests.bench.engines.transformers_ways import WAYS, Request, load


class Server:
    def __init__(self, way: str, folder: Path, batch: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._way = WAYS[way](load(folder), batch)
        self._http = HttpServer(self._answer)

    async def serve(self, port: int) -> None:
        await self._http.start(port)
        await asyncio.Event().wait()

    async def _answer(self, request: HttpRequest) -> HttpAnswer:
        if request.path == "/health":
            return HttpAnswer(body=b"ready")
        body = json.loads(request.body)
        if body["temperature"]:
            return HttpAnswer(400, b"greedy only")
        return HttpAnswer(events=self._events(body))

    async def _events(self, body: dict[str, Any]) -> AsyncGenerator[str]:
        loop, tokens = asyncio.get_running_loop(), asyncio.Queue[int]()
        request = Request(
            body["prompt"],
            body["max_tokens"],
            lambda token: loop.call_soon_threadsafe(tokens.put_nowait, token),
        )
        self._way.submit(request)
        decoder, text, num_made, reason = DecodeStream(skip_special_tokens=False), "", 0, "length"
        while num_made < request.max_tokens and reason == "length":
            token = await tokens.get()
            num_made += 1
            piece = decoder.step(self._tokenizer, token) or ""
            text += piece
            if any(stop in text for stop in body["stop"]):
                reason = "stop"
            yield json.dumps({"choices": [{"index": 0, "text": piece, "token_ids": [token]}]})
        yield json.dumps({"choices": [{"index": 0, "text": "", "finish_reason": reason}]})
        yield json.dumps({"choices": [], "usage": {"completion_tokens": num_made}})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.engines.transformers_server")
    parser.add_argument("way", choices=sorted(WAYS))
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True, help="requests at once")
    options = parser.parse_args()
    asyncio.run(Server(options.way, options.model, options.batch).serve(options.port))


if __name__ == "__main__":
    main()
