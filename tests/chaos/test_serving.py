"""The web server itself: bounded bodies, streams that flow, doors that stay shut, clear words when it can't start."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import partial
from typing import Any

import httpx2
import pytest

from inference.testing import script_text
from tests.chaos.oracle import Tab
from tests.chaos.stack import PROJECT, Stack
from tests.chaos.wire import Refused, Wire
from tests.patience import PATIENCE_S


async def exchange(port: int, *parts: bytes) -> bytes:
    """What the server says to these bytes until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("head", [b"Content-Length: 50000000", b"Transfer-Encoding: chunked"])
async def test_a_body_over_the_limit_is_refused_before_it_is_read(stack: Stack, head: bytes) -> None:
    chunk = b"x" * 2_100_000
    body = chunk if b"Length" in head else b"%x\r\n%s\r\n" % (len(chunk), chunk)
    request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n"
    answer = await exchange(stack.webs[-1].port, request, body)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "body_too_large"
    async with httpx2.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.1:{stack.webs[-1].port}/health/live")).status_code == 200


async def test_an_event_stream_flows_also_to_a_browser_that_takes_gzip(stack: Stack, tab: Tab) -> None:
    name = await tab.send(script_text(tokens=3000, delay_ms=10))
    answer = await tab.has_text(name)
    url = f"http://127.0.0.1:{stack.webs[-1].port}/api/generations/{answer.generation}/events"
    headers = {"Cookie": tab.cookie, "Accept-Encoding": "gzip, br"}
    async with httpx2.AsyncClient() as client, client.stream("GET", url, headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["x-accel-buffering"] == "no"
        assert "content-length" not in stream.headers
        assert stream.headers.get("content-encoding", "identity") == "identity"
        lines = stream.aiter_lines()
        kinds = [await next_kind(lines)]
        while kinds.count("delta") < 2:
            kinds.append(await next_kind(lines))
    assert kinds[0] == "snapshot"
    assert "done" not in kinds
    assert answer.done is None, "the stream came as one block at the end"
    await tab.stop_answer(answer.generation)
    assert (await tab.ended(name)).state == "stopped"


async def next_kind(lines: Any) -> str:
    async for line in lines:
        if line.startswith("data: "):
            return str(json.loads(line[6:])["type"])
    raise AssertionError("the stream ended")


async def test_foreign_pages_and_unknown_paths_get_403(stack: Stack, tab: Tab) -> None:
    port = stack.webs[-1].port
    for path, origin in (("/ws/chat", "https://evil.example"), ("/ws/other", stack.origin)):
        with pytest.raises(Refused) as refused:
            await Wire.open(port, path, {"Origin": origin, "Cookie": tab.cookie})
        assert refused.value.status == 403
    with pytest.raises(Refused):
        await Wire.open(port, "/ws/chat", {"Cookie": tab.cookie})


async def test_broken_frames_cost_only_their_own_socket(stack: Stack, tab: Tab) -> None:
    headers = {"Origin": stack.origin, "Cookie": tab.cookie}
    broken = [
        b"\xff\xff\xff\xff",
        b"\xc1\x80\0\0\0\0",
        b"\x81\x05hello",
        b"\x89\xfe\xff\xff",
        b"\x81\x82\0\0\0\0\xc3\x28",
    ]
    for raw in broken:
        wire = await Wire.open(stack.webs[-1].port, "/ws/chat", headers)
        wire.send_raw(raw)
        wire.vanish()
    assert (await tab.ended(await tab.send("still there?"))).state == "complete"
    assert "Traceback" not in stack.log()


async def test_a_taken_port_is_said_in_one_line(stack: Stack) -> None:
    argv = [sys.executable, "manage.py", "serve", "--port", str(stack.webs[-1].port)]
    serve = partial(
        subprocess.run, argv, env=stack.environ, cwd=PROJECT, check=False, capture_output=True, text=True
    )
    ended = await asyncio.to_thread(serve, timeout=PATIENCE_S)
    assert ended.returncode == 1
    assert "cannot listen on" in ended.stderr
    assert "Traceback" not in ended.stderr
