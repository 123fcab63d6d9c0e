"""Requests that go wrong in thousands of ways, the same ones each time, and what is never the answer to one.

Two kinds: combinations of parameters, each with a value that some client may send; and bodies that are no JSON, or not
the JSON that was meant. Knows the doors' fields; the site is the test's.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.patience import PATIENCE_S

CONCURRENT = 12
USER = {"role": "user", "content": "hi"}
ODD: tuple[Any, ...] = (
    None, 0, 1, -1, 2, 1.5, -0.0, 10**9, -(10**18), 2**63, 10**30, 1e308, 1e-320, True, False, "", "10", "auto",
    "x" * 300, "\u202e\U0001f469\u200d\U0001f692", "null", [], [None], [[]], [1, 2], ["a", "b"], ["x"] * 30, {},
    {"type": "text"}, {"a": {"b": [1]}}, {"5": 1}, {"-1": 200}, {"type": "json_object"},
    {"include_usage": True}, {"include_usage": 3},
)  # fmt: skip
FIELDS: dict[str, tuple[str, ...]] = {
    "/v1/chat/completions": (
        "messages", "max_completion_tokens", "stream_options", "logprobs", "top_logprobs", "response_format", "tools",
        "tool_choice", "parallel_tool_calls", "functions", "function_call", "audio", "modalities", "chat_template",
    ),
    "/v1/completions": ("prompt", "stream_options", "logprobs", "echo", "suffix", "best_of"),
    "/v1/responses": (
        "input", "instructions", "max_output_tokens", "text", "metadata", "store", "previous_response_id",
        "conversation", "background", "tools", "tool_choice", "reasoning", "include", "prompt",
    ),
    "/v1/embeddings": ("input", "encoding_format", "dimensions"),
}  # fmt: skip
COMMON = (
    "model", "stream", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty",
    "frequency_penalty", "seed", "stop", "min_tokens", "stop_token_ids", "logit_bias", "n", "user", "prompt_cache_key",
    "speculate", "service_tier", "priority", "truncation", "max_tokens", "unknown_field", "",
)  # fmt: skip
MESSAGES: tuple[Any, ...] = (
    [USER], [USER, USER], [{"role": "system", "content": "x"}], [{"role": "developer", "content": "x"}, USER],
    [{"role": "assistant", "content": None, "tool_calls": []}, USER], [{"role": "tool", "content": "12 C"}],
    [{"role": "banana", "content": "x"}], [{}], ["hi"], [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/"}}]}], [USER] * 3000,
)  # fmt: skip
NO_NUMBERS = (b"NaN", b"-Infinity", b"1" * 4000, b"1e99999", b'"\\ud800"', b'"\\u0000"', b"'x'", b"tru")
NO_OBJECTS = (b"", b"null", b"[]", b'"hi"', b"7", b"\xef\xbb\xbf{}", b"\x1f\x8b\x08", b"a=b")


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    body: bytes


def good(path: str, models: tuple[str, str]) -> dict[str, Any]:
    chat, embedder = models
    match path:
        case "/v1/chat/completions":
            return {"model": chat, "messages": [USER], "max_tokens": 2}
        case "/v1/completions":
            return {"model": chat, "prompt": "hi", "max_tokens": 2}
        case "/v1/responses":
            return {"model": chat, "input": "hi", "max_output_tokens": 2}
    return {"model": embedder, "input": "hi"}


def combinations(count: int, models: tuple[str, str], seed: int = 1) -> Iterator[Request]:
    """Good requests with one to four of their parameters changed."""
    chance = random.Random(seed)
    for _ in range(count):
        path = chance.choice(tuple(FIELDS))
        body = good(path, models)
        for name in chance.sample(FIELDS[path] + COMMON, chance.randint(1, 4)):
            body[name] = chance.choice(MESSAGES if name in ("messages", "input") else ODD)
        # JSON has no number for infinity; what json.dumps writes for it is a malformed body.
        yield Request(path, json.dumps(body).encode())


def malformed(count: int, models: tuple[str, str], seed: int = 2) -> Iterator[Request]:
    """Bodies that were cut, overwritten, put together wrongly or never were JSON."""
    chance = random.Random(seed)
    for _ in range(count):
        path = chance.choice(tuple(FIELDS))
        body = bytearray(json.dumps(good(path, models)).encode())
        for _ in range(chance.randint(1, 3)):
            body = _spoiled(body, chance)
        yield Request(path, bytes(body))


def _spoiled(body: bytearray, chance: random.Random) -> bytearray:
    place = chance.randrange(len(body) + 1)
    match chance.randrange(8):
        case 0:
            spoiled = body[:place]
        case 1:
            spoiled = body[:place] + chance.randbytes(chance.randint(1, 8)) + body[place:]
        case 2:
            spoiled = body + chance.choice((body, b"]", b"}", b",", b"\x00", b"{}"))
        case 3:
            depth = chance.choice((50, 5000, 60_000))
            spoiled = body[:-1] + b',"z":' + b"[" * depth + b"]" * chance.choice((depth, 0)) + b"}"
        case 4:
            spoiled = body[:-1] + b',"seed":' + chance.choice(NO_NUMBERS) + b"}"
        case 5:
            spoiled = bytearray(chance.choice(NO_OBJECTS))
        case 6:
            spoiled = body.replace(b'"', chance.choice((b"'", b"", b"\xff", b'\\"')), chance.randint(1, 4))
        case _:
            spoiled = bytearray(chance.randbytes(chance.randint(1, 400)))
    return spoiled


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many requests ended with which status, and those that ended as none may, with what was told."""

    statuses: Counter[int]
    wrong: Sequence[str]


async def send_all(url: str, key: str, requests: Iterator[Request]) -> Outcome:
    """Asks a few at a time; an answer that is a stream is read to its end."""
    statuses: Counter[int] = Counter()
    wrong: list[str] = []

    async def work(client: httpx2.AsyncClient) -> None:
        for request in requests:
            response = await client.post(request.path, content=request.body)
            statuses[response.status_code] += 1
            trouble = _trouble(response)
            if trouble:
                wrong.append(
                    f"{trouble}: {response.status_code} {response.text[:200]} to {request.body[:300]!r}"
                )

    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    client = httpx2.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE_S)
    async with client, asyncio.TaskGroup() as group:
        for _ in range(CONCURRENT):
            group.create_task(work(client))
    return Outcome(statuses, wrong)


def _trouble(response: httpx2.Response) -> str:
    """Why this may not be an answer; empty where it may."""
    if response.status_code >= 500:
        return "a mistake of the server"
    if "internal_error" in response.text or "Traceback" in response.text:
        return "a mistake that was told"
    if response.status_code == 200:
        return ""
    if response.status_code not in (400, 404, 413):
        return "a status that says something else"
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return "no error object"
    return (
        "" if set(error) == {"message", "type", "param", "code"} and error["code"] else "half an error object"
    )
