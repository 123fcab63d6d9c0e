"""The others: short questions at a steady rate, each with the time until its first text.

Knows how to find out what the site can do at most, and how to keep it busy for a part of that.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx2

from tests.bench.preload.texts import words
from tests.bench.web.clients import Door

PROMPT_TOKENS, ANSWER_TOKENS = 100, 24
AT_ONCE = 8  # while the most is found out


@dataclass(frozen=True, slots=True)
class Sample:
    asked_at_s: float
    ttft_s: float


@dataclass(slots=True)
class Crowd:
    """Asks until it is cancelled; `samples` in the order in which answers ended, `num_refused` of a full site."""

    doors: Sequence[Door]
    chance: random.Random
    model: str
    samples: list[Sample] = field(default_factory=list)
    num_refused: int = 0
    _asking: set[asyncio.Task[None]] = field(default_factory=set)

    async def most_per_s(self, client: httpx2.AsyncClient, seconds: float) -> float:
        """Answers a second with as many askers as keep the site busy.

        The last answers end after `seconds`, the later the slower the site is: what counts is how long all took.
        """
        began_at, num = time.monotonic(), 0

        async def ask_on(door: Door) -> None:
            nonlocal num
            while time.monotonic() < began_at + seconds:
                await self._ask(client, door)
                num += 1

        await asyncio.gather(*(ask_on(door) for door in self.doors[:AT_ONCE]))
        if self.num_refused == num:
            raise RuntimeError(f"all of the others' {num} questions were refused")
        self.samples.clear()
        return num / (time.monotonic() - began_at)

    async def ask_for_ever(self, client: httpx2.AsyncClient, per_s: float) -> None:
        """At random moments, `per_s` a second in the mean, whether or not earlier answers have ended."""
        try:
            while True:
                await asyncio.sleep(self.chance.expovariate(per_s))
                task = asyncio.create_task(self._ask(client, self.chance.choice(self.doors)))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
        finally:
            await asyncio.gather(*self._asking, return_exceptions=True)

    def ttfts_s(self, spans_s: Sequence[tuple[float, float]]) -> list[float]:
        """Of those asked within one of the spans, however late their answers ended. Ask when all have."""
        return [
            sample.ttft_s
            for sample in self.samples
            if any(began_s <= sample.asked_at_s < ended_s for began_s, ended_s in spans_s)
        ]

    async def _ask(self, client: httpx2.AsyncClient, door: Door) -> None:
        body = {
            "model": self.model,
            "stream": True,
            "max_tokens": ANSWER_TOKENS,
            "min_tokens": ANSWER_TOKENS,
            "messages": [{"role": "user", "content": words(PROMPT_TOKENS, self.chance)}],
        }
        headers = {"Authorization": f"Bearer {door.key}"}
        asked_at_s = time.monotonic()
        url = f"{door.url}/v1/chat/completions"
        async with client.stream("POST", url, json=body, headers=headers, timeout=120) as answer:
            if answer.status_code != 200:
                self.num_refused += 1
                return
            ttft_s = None
            async for line in answer.aiter_lines():
                if ttft_s is None and has_text(line):
                    ttft_s = time.monotonic() - asked_at_s
        if ttft_s is not None:
            self.samples.append(Sample(asked_at_s, ttft_s))


def has_text(line: str) -> bool:
    """Whether a line of a stream has words of the answer: its first chunk comes before any is made."""
    if not line.startswith("data: {"):
        return False
    chunk = json.loads(line.removeprefix("data: "))
    return any(choice["delta"].get("content") for choice in chunk["choices"])
